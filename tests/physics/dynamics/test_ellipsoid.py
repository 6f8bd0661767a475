"""Scale and damping of fluid forces; test_parity.py compares the forces in tests/models/ellipsoids.xml."""

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


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e2])
def test_forces_grow_with_the_area_at_any_size(scale):
  geom = 'type="ellipsoid" size="{} {} {}" fluidcoef="0.5 0.2 0 1 0"'
  small, large = (
    geom_in_a_fluid('density="10"', [1, 0.2, 0.3, 0, 0, 0], geom.format(*(s * r for r in (1, 0.3, 2)))).force
    for s in (1.0, scale)
  )
  np.testing.assert_allclose(large, np.multiply(small, scale**2), rtol=1e-12)


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
