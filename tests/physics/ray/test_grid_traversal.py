"""Rays at height fields, against mj_ray."""

import mujoco
import numpy as np
import pytest

from physics.algebra.spatial import Vector
from physics.collision.hfield import HeightField
from physics.load import load_model
from physics.ray.grid_traversal import ray_height_field
from physics.ray.ray import NONE
from tests.physics.oracle import evaluate
from tests.physics.ray.test_ray import rays

ELEVATION = " ".join(f"{x:.3f}" for x in np.random.default_rng(1).uniform(size=30))
CORNERS = [[0, 0], [0.8, 0.6], [-0.8, -0.6], [0.8, -0.6], [0.16, 0.3], [-0.16, 0.15], [0, 0.3], [0.48, 0]]


def meet(origin, direction, elevation=ELEVATION):
  """Return what is found and what mj_ray finds, -1 for nothing."""
  mj = mujoco.MjModel.from_xml_string(f"""<mujoco>
    <asset><hfield name="h" nrow="5" ncol="6" size="0.8 0.6 0.5 0.3" elevation="{elevation}"/></asset>
    <worldbody><geom type="hfield" hfield="h"/></worldbody></mujoco>""")
  field, data, geom = HeightField.of(load_model(mj), 0), mujoco.MjData(mj), np.zeros(1, np.int32)
  mujoco.mj_forward(mj, data)

  def traced(program, *x):
    return [ray_height_field(program, field, Vector(*x[:3]), Vector(*x[3:]))]

  (found,) = evaluate(traced, *origin.T, *direction.T)
  wanted = [mujoco.mj_ray(mj, data, o, d, None, 1, -1, geom) for o, d in zip(origin, direction, strict=True)]
  return np.where(found < NONE, found, -1), np.array(wanted)


def test_a_height_field_is_met_where_mujoco_meets_it():
  """From above, from the side, from inside, along axes and diagonals."""
  found, wanted = meet(*rays(1000))
  np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
  assert 0.3 < (wanted >= 0).mean() < 0.95


@pytest.mark.parametrize("speed", [1.0, -3.0])
def test_vertical_rays_measure_heights(speed):
  """Between grid points, at them, on the edges of the field, and beside it."""
  place = np.random.default_rng(0).uniform((-0.9, -0.7), (0.9, 0.7), (100, 2))
  place[: len(CORNERS)] = CORNERS
  origin = np.hstack([place, np.full((100, 1), 2.0 * np.sign(speed))])
  found, wanted = meet(origin, np.tile([0, 0, -speed], (100, 1)))
  np.testing.assert_allclose(found, wanted, atol=1e-12)
  assert (wanted[: len(CORNERS)] > 0).all()
  assert (wanted < 0).any()


def test_a_ray_grazes_flat_ground_and_meets_a_wall():
  step = " ".join("0 0 0 1 1 1" for _ in range(5))
  origin = np.array([[-2.0, 0.1, 0.25], [-0.7, 0.05, 0.4], [2, 0.1, 0.1], [0.7, 0.1, 2]])
  direction = np.array([[1.0, 0, 0], [1, 0, 0], [-1, 0, 0], [-1, 0, -1]])
  found, wanted = meet(origin, direction, step)
  np.testing.assert_allclose(found, wanted, atol=1e-12)
  assert found[0] == pytest.approx(2 - 0.16 + 0.16)


def test_a_field_without_elevations_is_met_at_zero():
  place = np.random.default_rng(0).uniform((-0.9, -0.7, 1), (0.9, 0.7, 30), (100, 3))
  found, wanted = meet(place, np.tile([0.1, -0.05, -2.0], (100, 1)), " ".join("0" * 30))
  np.testing.assert_allclose(found, wanted, atol=1e-12)
  assert (found > 0).any()
