"""Equations of motion on plain numbers against MuJoCo."""

import numpy as np
import pytest
import torch

from physics.algebra.spatial import Force, Vector
from physics.dynamics.dynamics import (
  ancestors,
  bias_forces,
  body_inertias,
  composite_inertias,
  mass_matrix,
  project,
)
from physics.dynamics.kinematics import poses, propagate, velocities
from physics.engines.mujoco_engine import full_mass_matrix
from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from tests.physics.conftest import load
from tests.physics.oracle import dense, mujoco_at

BRICK = """<mujoco><worldbody><body><freejoint/><geom type="box" size="0.03 0.02 0.01" mass="0.1"/></body>
  </worldbody></mujoco>"""


@pytest.fixture
def random():
  return np.random.default_rng(0)


def test_ancestors_come_nearest_first():
  model = load("self_contact")
  assert list(ancestors(model, 7)) == [6, 5, 4, 3, 2, 1, 0]
  assert list(ancestors(model, 8)) == [5, 4, 3, 2, 1, 0]
  assert list(ancestors(model, 0)) == []


@pytest.fixture(scope="module", params=["self_contact", "springs", "gymnasium/ant", "free_bodies"])
def case(request):
  """Return a model, a state in motion, its poses and MuJoCo's data."""
  model = load(request.param)
  states = random_states(model, 1, seed=1)
  data = mujoco_at(model, states.qpos[0], states.qvel[0])
  return model, states.qvel[0].tolist(), poses(model, states.qpos[0].tolist()), data


def test_mass_matrix_is_mujocos(case):
  model, _, p, data = case
  M = mass_matrix(model, p, composite_inertias(model, p, body_inertias(model, p)))
  np.testing.assert_allclose(dense(M), full_mass_matrix(model.mj, data), atol=1e-10)


def test_bias_forces_are_mujocos(case):
  model, qvel, p, data = case
  found = bias_forces(model, p, body_inertias(model, p), *velocities(model, p, qvel))
  np.testing.assert_allclose(found, data.qfrc_bias, atol=1e-9)


def test_projected_forces_do_the_work_of_the_bodies_forces(case, random):
  model, _, p, _ = case
  forces = [
    Force(Vector(*random.normal(size=3).tolist()), Vector(*random.normal(size=3).tolist()))
    for _ in range(model.nbody)
  ]
  rates = random.normal(size=model.nv).tolist()
  work = sum(force.power(motion) for force, motion in zip(forces, propagate(model, p, rates), strict=True))
  assert np.dot(project(model, p, forces), rates) == pytest.approx(work, rel=1e-10)


def test_kinetic_energy_is_that_of_the_bodies(case):
  model, qvel, p, _ = case
  inertias = body_inertias(model, p)
  M = mass_matrix(model, p, composite_inertias(model, p, inertias))
  moving = zip(inertias, propagate(model, p, qvel), strict=True)
  bodies = sum((inertia @ motion).power(motion) for inertia, motion in moving)
  armature = np.dot(model.dof_armature, np.square(qvel))
  assert np.dot(M @ qvel, qvel) == pytest.approx(bodies + armature, rel=1e-10)


def test_float32_leaves_a_fast_small_body_its_turning():
  """The product of velocity and momentum is zero, but its rounding is large beside a small inertia."""
  model = load_model(BRICK)
  simulation = NumpySimulation(model, 64, ("qacc_smooth",), np.float32)
  random = np.random.default_rng(0)
  qvel = random.normal(size=(64, 6)).astype(np.float32) * [10, 10, 10, 3, 3, 3]
  simulation.qvel[:] = torch.from_numpy(qvel)
  simulation.forward()
  expected = [mujoco_at(model, model.qpos0, each).qacc_smooth for each in np.asarray(simulation.qvel, float)]
  np.testing.assert_allclose(simulation.qacc_smooth.numpy(), expected, atol=1e-5)
