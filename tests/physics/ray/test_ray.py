"""Rays at single shapes, against mju_rayGeom."""

import mujoco
import numpy as np
import pytest

from physics.algebra.spatial import Vector
from physics.collision.geometry import BOX, CAPSULE, CYLINDER, ELLIPSOID, PLANE, SPHERE
from physics.ray.ray import (
  NONE,
  ray_box,
  ray_box_faces,
  ray_capsule,
  ray_cylinder,
  ray_ellipsoid,
  ray_plane,
  ray_sphere,
  ray_triangle,
)
from tests.physics.oracle import evaluate

SIZE = (0.5, 0.7, 0.4)
SHAPES = {
  "plane": (PLANE, lambda o, d: ray_plane(o, d, SIZE)),
  "sphere": (SPHERE, lambda o, d: ray_sphere(o, d, SIZE[0])),
  "capsule": (CAPSULE, lambda o, d: ray_capsule(o, d, *SIZE[:2])),
  "ellipsoid": (ELLIPSOID, lambda o, d: ray_ellipsoid(o, d, SIZE)),
  "cylinder": (CYLINDER, lambda o, d: ray_cylinder(o, d, *SIZE[:2])),
  "box": (BOX, lambda o, d: ray_box(o, d, SIZE)),
}


def rays(count, seed=0):
  """Return origins and directions [count, 3], many towards the middle, some along axes."""
  random = np.random.default_rng(seed)
  origin = random.uniform(-1.2, 1.2, (count, 3))
  direction = random.normal(size=(count, 3)) - random.choice([0, 2], (count, 1)) * origin
  direction[::5] = np.eye(3)[random.integers(3, size=len(direction[::5]))] * random.choice([-1, 1], (1, 1))
  return origin, direction


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_is_met_where_mujoco_meets_it(shape):
  kind, meet = SHAPES[shape]
  origin, direction = rays(800)
  (found,) = evaluate(lambda _, *x: [meet(Vector(*x[:3]), Vector(*x[3:]))], *origin.T, *direction.T)
  place, turn, size = np.zeros(3), np.eye(3).ravel(), np.array(SIZE)
  wanted = [
    mujoco.mju_rayGeom(place, turn, size, o, d, kind, None) for o, d in zip(origin, direction, strict=True)
  ]
  np.testing.assert_allclose(np.where(found < NONE, found, -1), wanted, rtol=1e-9, atol=1e-9)
  assert 0.05 < (found < NONE).mean() < 0.9


def test_a_plane_without_sizes_is_endless():
  far, down = Vector(1e3, -2e3, 2.0), Vector(0.0, 0.0, -0.5)
  assert ray_plane(far, down, (0.0, 0.0, 1.0)) == 4
  assert ray_plane(far, down, (0.0, 1.0, 1.0)) == NONE
  assert ray_plane(far, -down, (0.0, 0.0, 1.0)) == NONE


def test_every_face_of_a_box_is_met_on_its_own():
  through = Vector(-2.0, 0.1, 0.1), Vector(1.0, 0.0, 0.0)
  assert ray_box_faces(*through, SIZE) == [1.5, 2.5, NONE, NONE, NONE, NONE]
  inside = Vector(0.0, 0.1, 0.0), Vector(0.0, 2.0, 0.0)
  assert ray_box_faces(*inside, SIZE) == pytest.approx([NONE, NONE, NONE, 0.3, NONE, NONE])


def test_a_triangle_is_met_from_both_sides():
  corners = np.random.default_rng(1).normal(size=(3, 3))
  weights = np.random.default_rng(2).uniform(-0.5, 1.5, (100, 2))
  aims = corners[0] + weights @ (corners[1:] - corners[0])
  origin, _ = rays(100)
  within = (weights.min(axis=1) >= 0) & (weights.sum(axis=1) <= 1)

  def traced(_, *x):
    return [ray_triangle(Vector(*x[:3]), Vector(*x[3:]), (Vector(*c) for c in corners.tolist()))]

  (found,) = evaluate(traced, *origin.T, *((aims - origin) / 3).T)
  np.testing.assert_allclose(found, np.where(within, 3, NONE), rtol=1e-9)
  (away,) = evaluate(traced, *origin.T, *(origin - aims).T)
  assert (away == NONE).all()
  assert 5 < within.sum() < 95


def test_a_triangle_without_area_is_not_met():
  corners = (Vector(0.0, 0.0, 0.0), Vector(1.0, 0.0, 0.0), Vector(2.0, 0.0, 0.0))
  assert ray_triangle(Vector(0.5, 0.0, 1.0), Vector(0.0, 0.0, -1.0), corners) == NONE
