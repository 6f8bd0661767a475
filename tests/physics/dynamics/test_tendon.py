"""Tendons on plain numbers against MuJoCo."""

import numpy as np

from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at, smooth_of


def test_lengths_velocities_and_moment_arms_are_mujocos():
  model = load("tendons")
  assert model.tendon_names == ("flexor", "coupling", "narrow", "stuck")
  states = random_states(model, 4)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    data = mujoco_at(model, qpos, qvel)
    found = smooth_of(model, data).tendons
    np.testing.assert_allclose(found.length, data.ten_length, atol=1e-14)
    np.testing.assert_allclose(found.velocity, data.ten_velocity, atol=1e-13)
    for tendon, jacobian in enumerate(found.jacobian):
      first, count = model.mj.ten_J_rowadr[tendon], model.mj.ten_J_rownnz[tendon]
      columns = model.mj.ten_J_colind[first : first + count].tolist()
      assert jacobian == dict(zip(columns, data.ten_J[first : first + count].tolist(), strict=True))
