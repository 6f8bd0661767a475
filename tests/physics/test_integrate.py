"""One time step on plain numbers, against MuJoCo."""

import dataclasses

import mujoco
import numpy as np
import pytest

from physics.dynamics import TreeMatrix
from physics.integrate import integrate_position, integrate_velocity
from physics.parity import full_mass_matrix, random_states
from tests.physics.conftest import load
from tests.physics.oracle import dense, mujoco_at


@pytest.mark.parametrize("name", ["springs", "free_bodies", "ball_limit", "gymnasium/hopper"])
def test_positions_are_mujocos(name):
  model = load(name)
  states = random_states(model, 4)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    expected = mujoco_at(model, qpos).qpos.copy()
    mujoco.mj_normalizeQuat(model.mj, expected)
    mujoco.mj_integratePos(model.mj, expected, qvel, model.timestep)
    np.testing.assert_allclose(integrate_position(model, qpos.tolist(), qvel.tolist()), expected, atol=1e-12)


def test_what_stands_still_stays_and_quaternions_become_unit():
  model = load("self_contact")
  qpos = [*model.qpos0[:3], 0.0, 0.0, 3.0, 4.0, *[0.1] * (model.nq - 7)]
  found = integrate_position(model, [float(x) for x in qpos], [0.0] * model.nv)
  np.testing.assert_allclose(found, [*qpos[:3], 0, 0, 0.6, 0.8, *qpos[7:]], atol=1e-15)


def test_spinning_a_full_turn_comes_back():
  model = load("free_bodies")
  qpos, qvel = model.qpos0.tolist(), [0.0] * model.nv
  joint = int(np.flatnonzero(model.jnt_type == 0)[0])
  at, dof = int(model.jnt_qposadr[joint]) + 3, int(model.jnt_dofadr[joint]) + 3
  steps = 64
  qvel[dof : dof + 3] = [
    0.0,
    0.6 * 2 * np.pi / (steps * model.timestep),
    0.8 * 2 * np.pi / (steps * model.timestep),
  ]
  half = None
  for step in range(steps):
    half = qpos[at : at + 4] if step == steps // 2 else half
    qpos = integrate_position(model, qpos, qvel)
  np.testing.assert_allclose(np.abs(qpos[at : at + 4]), np.abs(model.qpos0[at : at + 4]), atol=1e-12)
  assert abs(np.dot(half, qpos[at : at + 4])) < 1e-12


def mass_matrix(model, data):
  full, M = full_mass_matrix(model.mj, data), TreeMatrix(model)
  for i in range(model.nv):
    for j in (i, *M.ancestors(i)):
      M[i, j] = float(full[i, j])
  return M


@pytest.mark.parametrize("damped", [True, False])
def test_damping_is_implicit(damped):
  model = dataclasses.replace(load("springs"), eulerdamp=damped)
  assert model.dof_damping.any()
  states, random = random_states(model, 1), np.random.default_rng(0)
  M, qacc = mass_matrix(model, mujoco_at(model, states.qpos[0])), 10 * random.normal(size=model.nv)
  B = np.diag(model.dof_damping) * damped
  expected = states.qvel[0] + model.timestep * np.linalg.solve(dense(M) + model.timestep * B, dense(M) @ qacc)
  found = integrate_velocity(model, M, states.qvel[0].tolist(), qacc.tolist())
  np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_without_damping_velocity_grows_by_the_acceleration():
  model = load("margins")
  assert not model.dof_damping.any()
  found = integrate_velocity(model, TreeMatrix(model), [1.0] * model.nv, [2.0] * model.nv)
  assert found == [1.0 + model.timestep * 2.0] * model.nv
