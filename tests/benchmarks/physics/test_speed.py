"""Both engines make the same run, and a run that is not honest is refused."""

import dataclasses

import numpy as np
import pytest
from mujoco.batch import Batch

import physics
from benchmarks import cases
from benchmarks.physics import models, speed

CASE = cases.PhysicsCase("hopper", "hopper", warm=2, goal=1, num_envs=16, peer_envs=16, steps=3)


@pytest.fixture(scope="module")
def sim() -> physics.Simulation:
  return physics.Simulation(models.load("hopper"), CASE.num_envs, threads=1)


@pytest.mark.parametrize("spread", [1.0, 0.2])
def test_controls_are_uniform_about_home(spread: float) -> None:
  model = models.load("ant")
  controls = speed.random_controls(model, dataclasses.replace(CASE, spread=spread), 100, seed=0)
  assert controls.shape == (100, CASE.num_envs, model.nu)
  assert controls.abs().max() == pytest.approx(spread, rel=0.01)
  assert controls.mean() == pytest.approx(0, abs=0.02)


def test_start_is_near_home_and_within_limits(sim: physics.Simulation) -> None:
  model = sim.model
  home, _ = speed.home(model)
  start = speed.find_situation(dataclasses.replace(CASE, warm=0), sim)
  away = np.abs(start.qpos - home)
  assert (away <= speed.shifts(model).numpy() + 1e-6).all()
  assert away.max(axis=0).min() > 0
  for joint in np.flatnonzero(model.jnt_limited):
    low, high = model.jnt_range[joint]
    assert speed.shifts(model)[model.jnt_qposadr[joint]] <= (high - low) / 20


def test_both_engines_make_the_same_run(sim: physics.Simulation) -> None:
  start = speed.find_situation(CASE, sim)
  batch = Batch(sim.model.mj, CASE.peer_envs, nthread=1)
  assert speed.own_run(sim, start)() > 0
  assert speed.peer_run(batch, start)() > 0
  np.testing.assert_allclose(sim.qpos.numpy(), batch.qpos, atol=1e-4)
  np.testing.assert_allclose(sim.qvel.numpy(), batch.qvel, atol=1e-2)


def test_an_honest_run_is_acceptable_and_a_wrong_one_is_not(sim: physics.Simulation) -> None:
  found = speed.check(sim, speed.find_situation(CASE, sim))
  assert speed.acceptable(sim.model, found)
  for fault in (
    {"overflow": 1},
    {"solver_iterations_worst": sim.model.iterations},
    {"parity_within_1e-4": 0.5},
    {"parity_worst_over_bound": 2.0},
  ):
    assert not speed.acceptable(sim.model, found | fault)
