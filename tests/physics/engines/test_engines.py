"""The two drop-in simulations: MuJoCo C itself, and the traced program on NumPy."""

from unittest import mock

import mujoco
import numpy as np
import pytest
import torch

from physics.engines import MujocoSimulation, NumpySimulation, numpy_engine
from physics.engines.mujoco_engine import full_mass_matrix
from physics.load import load_model
from physics.parity import random_states
from physics.solver import newton
from tests.physics.conftest import GYMNASIUM, load


def ant():
  return load_model(GYMNASIUM / "ant.xml", integrator="Euler")


def test_reference_simulation_is_mujoco():
  model = ant()
  states = random_states(model, 3, seed=5)
  simulation = MujocoSimulation(model, 3, outputs=("qacc", "qfrc_bias", "qM", "xpos", "xquat", "cfrc_ext"))
  for name in ("qpos", "qvel", "ctrl"):
    getattr(simulation, name)[:] = torch.from_numpy(getattr(states, name))
  simulation.step(4)
  for env in range(3):
    data = mujoco.MjData(model.mj)
    data.qpos[:], data.qvel[:], data.ctrl[:] = states.qpos[env], states.qvel[env], states.ctrl[env]
    mujoco.mj_step(model.mj, data, 4)
    mujoco.mj_rnePostConstraint(model.mj, data)
    for name in ("qpos", "qvel", "qacc", "qacc_warmstart", "xpos", "xquat", "cfrc_ext", "qfrc_bias"):
      np.testing.assert_array_equal(getattr(simulation, name)[env], getattr(data, name), err_msg=name)
    np.testing.assert_array_equal(simulation.qM[env], full_mass_matrix(model.mj, data))
    assert simulation.contact_count[env] == sum(contact.exclude == 0 for contact in data.contact)
    assert simulation.solver_niter[env] == data.solver_niter[0]


def test_reference_simulation_reduces_over_the_time_steps_as_asked():
  model = ant()
  outputs = {"xpos": "max", "qacc": "mean", "xquat": "last"}
  whole, steps = MujocoSimulation(model, 1, outputs), MujocoSimulation(model, 1, list(outputs))
  seen = {name: [] for name in outputs}
  whole.step(3)
  for _ in range(3):
    steps.step(1)
    for name in outputs:
      seen[name].append(getattr(steps, name).clone())
  torch.testing.assert_close(whole.xpos, torch.stack(seen["xpos"]).amax(0))
  torch.testing.assert_close(whole.qacc, torch.stack(seen["qacc"]).mean(0))
  assert whole.xquat.equal(seen["xquat"][-1])


def test_reference_simulation_gives_each_environment_the_numbers_that_vary():
  model = load_model(GYMNASIUM / "ant.xml", integrator="Euler", vary=["body_mass", "body_inertia", "gravity"])
  simulation = MujocoSimulation(model, 3, outputs=("qfrc_bias",))
  simulation.body_mass[1] *= 2
  simulation.body_inertia[1] *= 2
  simulation.gravity[2] = 0.0
  simulation.step(1)
  once, twice, weightless = simulation.qfrc_bias
  torch.testing.assert_close(twice, 2 * once)
  assert once.abs().max() > 1
  assert weightless.abs().max() == 0
  assert model.mj.opt.gravity[2] == -9.81, "the model itself stays as it was"


def test_reference_simulation_holds_the_contract():
  simulation = MujocoSimulation(ant(), 3)
  views = {
    name: getattr(simulation, name) for name in ("qpos", "qvel", "ctrl", "qacc_warmstart", "qacc", "xpos")
  }
  start = simulation.get_state()
  controls = torch.rand(3, 5, simulation.model.nu, dtype=torch.float64)
  simulation.step(5, controls)
  assert simulation.ctrl.equal(controls[:, -1])
  once = simulation.get_state()
  simulation.set_state(start)
  for substep in range(5):
    simulation.step(ctrl=controls[:, substep : substep + 1])
  assert simulation.get_state().equal(once)
  simulation.reset(torch.tensor([False, True, False]))
  assert simulation.get_state()[1].equal(start[1])
  assert simulation.get_state()[::2].equal(once[::2])
  height = simulation.xpos[:, 1, 2].clone()
  simulation.qpos[:, 2] += 1.0
  simulation.forward(torch.tensor([True, False, False]))
  assert (simulation.xpos[:, 1, 2] > height + 0.5).tolist() == [True, False, False]
  assert all(getattr(simulation, name) is view for name, view in views.items())


def test_numpy_simulation_computes_in_the_precision_asked_for():
  model = load("self_contact")
  states = random_states(model, 8)
  positions = {}
  for dtype in (np.float32, np.float64):
    simulation = NumpySimulation(model, 8, dtype=dtype)
    states.write_to(simulation)
    simulation.step(3)
    positions[dtype] = simulation.qpos.numpy().copy()
    assert positions[dtype].dtype == dtype
    simulation.reset()
    np.testing.assert_array_equal(simulation.qpos, np.tile(model.qpos0.astype(dtype), (8, 1)))
  difference = np.abs(positions[np.float32] - positions[np.float64]).max()
  assert 1e-9 < difference < 1e-5


def test_a_failed_trace_leaves_the_solvers_tolerances_as_they_are(monkeypatch):
  """Kernels that are traced later in the process would be others, and would iterate longer."""
  before = newton.TOLERANCE, newton.STEP_TOLERANCE
  monkeypatch.setattr(numpy_engine, "trace_step", mock.Mock(side_effect=KeyError))
  with pytest.raises(KeyError):
    NumpySimulation(load("springs"), 2, ("qacc",))
  assert before == (newton.TOLERANCE, newton.STEP_TOLERANCE)
