"""Scale of fluid forces; test_parity.py compares forces and damping in tests/models/ellipsoids.xml."""

import numpy as np
import pytest

from physics.dynamics.ellipsoid import ellipsoids
from physics.load import load_model
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
