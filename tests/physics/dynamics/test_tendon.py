"""Tendons on plain numbers against MuJoCo."""

import mujoco
import numpy as np
import pytest

from physics.algebra.spatial import NO_FORCE
from physics.dynamics.dynamics import project
from physics.dynamics.tendon import tendon_acceleration
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
      assert jacobian == moment_arms(model.mj, data, tendon)


def test_spatial_tendons_are_mujocos_around_geoms_on_a_side_and_over_pulleys():
  model = load("spatial_tendons")
  states = random_states(model, 64)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    data = mujoco_at(model, qpos, qvel)
    found = smooth_of(model, data).tendons
    np.testing.assert_allclose(found.length, data.ten_length, atol=1e-12)
    for tendon, name in enumerate(model.tendon_names):
      if name != "sheath":  # MuJoCo ends its search for the point of an inside wrap at 1e-6
        assert found.velocity[tendon] == pytest.approx(data.ten_velocity[tendon], abs=1e-11)
        arms, expected = found.jacobian[tendon], moment_arms(model.mj, data, tendon)
        for dof in range(model.nv):
          assert arms.get(dof, 0.0) == pytest.approx(expected.get(dof, 0.0), abs=1e-11)


def test_pulls_on_bodies_do_the_work_of_the_moment_arms():
  model = load("spatial_tendons")
  for qpos in random_states(model, 16).qpos:
    smooth = smooth_of(model, mujoco_at(model, qpos))
    for pulls, jacobian in zip(smooth.tendons.pulls, smooth.tendons.jacobian, strict=True):
      forces = [pulls.get(body, NO_FORCE) for body in range(model.nbody)]
      arms = [jacobian.get(dof, 0.0) for dof in range(model.nv)]
      np.testing.assert_allclose(project(model, smooth.poses, forces), arms, atol=1e-12)
      # Along its path a tendon pulls no body without pulling another one back.
      assert np.sum([force.force for force in forces], axis=0) == pytest.approx(np.zeros(3), abs=1e-12)


def test_each_way_of_wrapping_is_met_by_the_random_states():
  model = load("spatial_tendons")
  met = {name: set() for name in model.tendon_names}
  states = random_states(model, 64)
  for qpos in states.qpos:
    data = mujoco_at(model, qpos)
    for name, count in zip(met, data.ten_wrapnum.tolist(), strict=True):
      met[name].add(count)
  assert {name: len(counts) for name, counts in met.items()} == {
    "rope": 1,
    "flexor": 2,
    "extensor": 3,
    "sheath": 2,
    "hoist": 3,
    "twin": 1,
  }


def test_moment_arms_of_an_inside_wrap_are_the_slopes_of_its_length():
  model = load("spatial_tendons")
  sheath = model.tendon_names.index("sheath")
  states = random_states(model, 16)
  step = 1e-6
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    velocity = smooth_of(model, mujoco_at(model, qpos, qvel)).tendons.velocity[sheath]
    lengths = []
    for sign in (-1.0, 1.0):
      moved = qpos.copy()
      mujoco.mj_integratePos(model.mj, moved, qvel, sign * step)
      lengths.append(smooth_of(model, mujoco_at(model, moved)).tendons.length[sheath])
    assert velocity == pytest.approx((lengths[1] - lengths[0]) / (2.0 * step), abs=1e-7)


def moment_arms(mj, data, tendon):
  """Return MuJoCo's row of the Jacobian of tendons, by degree of freedom."""
  first, count = mj.ten_J_rowadr[tendon], mj.ten_J_rownnz[tendon]
  columns = mj.ten_J_colind[first : first + count].tolist()
  return dict(zip(columns, data.ten_J[first : first + count].tolist(), strict=True))


def test_accelerations_of_lengths_are_the_slopes_of_their_velocities():
  model = load("heavy_tendons")
  step = 1e-6
  states = random_states(model, 8)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    smooth = smooth_of(model, mujoco_at(model, qpos, qvel))
    velocities = []
    for sign in (-1.0, 1.0):
      moved = qpos.copy()
      mujoco.mj_integratePos(model.mj, moved, qvel, sign * step)
      velocities.append(smooth_of(model, mujoco_at(model, moved, qvel)).tendons.velocity)
    slopes = np.subtract(*reversed(velocities)) / (2.0 * step)
    found = [
      tendon_acceleration(model, smooth.poses, tendon, smooth.velocity, smooth.acceleration)
      for tendon in range(model.ntendon)
    ]
    np.testing.assert_allclose(found, slopes, atol=1e-6)
