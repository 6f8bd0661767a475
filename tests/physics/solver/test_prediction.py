"""The predicted start of the solver: the residuals of the last solution, within float32's digits."""

import numpy as np
import pytest
import torch

from physics.constraint.params import reference_constants
from physics.engines import NumpySimulation
from physics.integrate import OneStage
from physics.load import load_model
from physics.solver.prediction import predict_acceleration
from tests.physics.oracle import evaluate

IMPEDANCE = 0.8
SLIDES = """<mujoco><option timestep="0.003" {options}/>
  <default>
    <joint type="slide" range="0 1" limited="{limited}" solimplimit="0.8 0.8 0.001"/>
    <geom size="0.1" contype="0" conaffinity="0"/>
  </default>
  <worldbody><body><joint/><geom/></body><body><joint axis="0 1 0"/><geom/></body></worldbody></mujoco>"""
FALLING = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.11"><freejoint/><geom type="box" size="0.1 0.06 0.04"/></body></worldbody></mujoco>"""


def slides(limited="true", options=""):
  """Return a model of two slides with limits, if any."""
  return load_model(SLIDES.format(limited=limited, options=options))


def predicted(model, qacc, qvel, elapsed=1.0):
  """Return the predicted accelerations [2, env]."""

  def traced(program, *numbers):
    x = program.array(2)
    x.fill(numbers[:2])
    predict_acceleration(model, x, list(numbers[2:]), elapsed)
    return x.read()

  return evaluate(traced, *qacc, *qvel)


def test_rows_have_the_residuals_of_the_last_solution():
  model, rng = slides(), np.random.default_rng(0)
  stiffness, damping = reference_constants(model, (0.02, 1.0), IMPEDANCE)
  qpos, qvel, qacc = rng.standard_normal((3, 2, 64)) * np.array([1e-3, 0.1, 100.0])[:, None, None]

  def residual(qpos, qvel, qacc):
    return qacc + damping * qvel + stiffness * IMPEDANCE * qpos

  later = qvel + model.timestep * qacc
  start = predicted(model, qacc, later)
  np.testing.assert_allclose(
    residual(qpos + model.timestep * later, later, start), residual(qpos, qvel, qacc), atol=1e-10
  )


def test_the_start_is_no_further_than_the_last_acceleration_is_large():
  start = predicted(slides(), [[0.0, 3.0], [0.0, 4.0]], [[100.0, 100.0], [0.0, 0.0]])
  assert np.abs(start).max() < 2.0 * 5.0
  assert not start[:, 0].any()


@pytest.mark.parametrize(
  "model", [slides(limited="false"), slides(options='iterations="5"')], ids=["free", "few iterations"]
)
def test_nothing_is_predicted_without_rows_or_where_the_answer_depends_on_the_start(model):
  qacc, qvel = np.random.default_rng(0).standard_normal((2, 2, 8))
  np.testing.assert_array_equal(predicted(model, qacc, qvel), qacc)


def test_no_time_changes_nothing():
  qacc, qvel = np.random.default_rng(0).standard_normal((2, 2, 8))
  np.testing.assert_array_equal(predicted(slides(), qacc, qvel, elapsed=0.0), qacc)


def iterations_of_falls():
  """Return the iterations of boxes that fall to the floor and tumble, per time step in contact."""
  simulation = NumpySimulation(load_model(FALLING), num_envs=16)
  simulation.qvel[:] = torch.from_numpy(np.random.default_rng(0).standard_normal((16, 6)))
  taken, touching = 0.0, 0.0
  for _ in range(60):
    simulation.step()
    touches = simulation.contact_count > 0
    taken, touching = taken + simulation.solver_niter[touches].sum(), touching + touches.sum()
  return float(taken / touching)


def test_falls_take_fewer_iterations(monkeypatch):
  fewer = iterations_of_falls()
  monkeypatch.setattr(OneStage, "elapsed", (0.0,))
  assert fewer < 0.9 * iterations_of_falls()
