"""Fluid forces on ellipsoids by hand, and their derivatives; test_passive.py compares them with MuJoCo."""

import math

import numpy as np
import pytest

from physics.dynamics.ellipsoid import ellipsoids
from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at, smooth_of


def geom_in_a_fluid(options, velocity, geom):
  """Return the forces on a geom that moves and turns at `velocity` [6], linear part first."""
  model = load_model(f"""<mujoco><option gravity="0 0 0" {options}/><worldbody><body><freejoint/>
    <geom mass="1" contype="0" conaffinity="0" fluidshape="ellipsoid" {geom}/></body></worldbody></mujoco>""")
  smooth = smooth_of(model, mujoco_at(model, model.qpos0, velocity))
  (each,) = ellipsoids(model, smooth.poses, smooth.velocity)
  return each.force


def test_viscous_resistance_is_that_of_a_sphere_of_mean_size():
  force = geom_in_a_fluid('viscosity="0.1"', [0, 3, 0, 0, 0, -1], 'type="ellipsoid" size="1 2 3"')
  assert force.force == pytest.approx((0, -3 * math.pi * 4 * 0.1 * 3, 0))
  assert force.torque == pytest.approx((0, 0, math.pi * 4**3 * 0.1))


def test_blunt_drag_acts_on_the_area_that_the_flow_sees_and_slender_drag_on_the_rest():
  disc = 'type="ellipsoid" size="1 2 3" fluidcoef="0.5 0.1 0 0 0"'
  along_x, along_z = (geom_in_a_fluid('density="10"', v + [0] * 3, disc) for v in ([2, 0, 0], [0, 0, 2]))
  assert along_x.force == pytest.approx((-10 * 0.5 * math.pi * 6 * 4, 0, 0))
  assert along_z.force == pytest.approx((0, 0, -10 * (0.5 * math.pi * 2 + 0.1 * math.pi * 4) * 4))


def test_a_spinning_sphere_is_lifted_across_its_way():
  ball = 'size="0.5" fluidcoef="0 0 0 0 1.5"'
  force = geom_in_a_fluid('density="10"', [2, 0, 0, 0, 0, 3], ball).force
  displaced = 10 * 4 / 3 * math.pi * 0.125
  # The fluid that moves along, half of what is displaced, is turned too.
  assert force == pytest.approx((0, (1.5 - 0.5) * displaced * 3 * 2, 0), rel=1e-6)


def test_a_plate_is_lifted_to_the_side_that_it_leans_to():
  force = geom_in_a_fluid(
    'density="10"', [1, 0, -0.3, 0, 0, 0], 'type="box" size="1 1 0.05" fluidcoef="0 0 0 1 0"'
  )
  assert force.force[2] > 1  # up, and across the flow, which it does not brake
  assert np.dot(force.force, [1, 0, -0.3]) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e2])
def test_forces_grow_with_the_area_at_any_size(scale):
  geom = 'type="ellipsoid" size="{} {} {}" fluidcoef="0.5 0.2 0 1 0"'
  small, large = (
    geom_in_a_fluid('density="10"', [1, 0.2, 0.3, 0, 0, 0], geom.format(*(s * r for r in (1, 0.3, 2)))).force
    for s in (1.0, scale)
  )
  np.testing.assert_allclose(large, np.multiply(small, scale**2), rtol=1e-12)


def test_what_drifts_with_the_wind_feels_nothing():
  force = geom_in_a_fluid('density="10" viscosity="1" wind="1 2 3"', [1, 2, 3, 0, 0, 0], 'size="0.1"')
  assert force.components == (0,) * 6


def test_damping_is_the_derivative_of_the_forces():
  """By central differences."""
  model, h = load("ellipsoids"), 1e-6
  states = random_states(model, 6)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    smooth, found = smooth_of(model, mujoco_at(model, qpos, qvel)), np.zeros((model.nv, model.nv))
    for (i, j), value in smooth.damping.items():
      found[i, j] = found[j, i] = value
    for each in ellipsoids(model, smooth.poses, smooth.velocity):
      for (i, j), value in each.damping(model, smooth.poses, skew=True):
        found[i, j] += value
        found[j, i] -= value
    for dof, step in enumerate(h * np.eye(model.nv)):
      ahead, behind = (mujoco_at(model, qpos, qvel + move).qfrc_passive for move in (step, -step))
      np.testing.assert_allclose(found[:, dof], (behind - ahead) / (2 * h), rtol=1e-6, atol=1e-5)
