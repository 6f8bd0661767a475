"""The closest points of two cores, against formulas and against the shapes themselves."""

import numpy as np
import pytest

from physics.convex.closest import closest
from physics.convex.core import BOX, CAPSULE, CYLINDER, ELLIPSOID, SPHERE
from physics.trace.trace import where
from tests.physics.convex.scene import random_poses, run

REACH = 3.0


def measured(reach=REACH):
  def function(a, b):
    found = closest(a, b, reach, 50)
    flags = [where(mask, 1.0, 0.0) for mask in (found.overlap, found.beyond)]
    return [*found.separation, *found.on_a, *flags, *found.vertices_a, *found.vertices_b]

  return function


def inside_box(points, position, rotation, size):
  """Return how far [m] points [3, lane] are outside of a box."""
  local = np.einsum("jil,jl->il", rotation, points - position)
  return (np.abs(local) - np.array(size)[:, None]).max(axis=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_two_segments_are_as_far_apart_as_the_formula_says(dtype):
  poses = random_poses(300, 0.5)
  found = run(measured(), (CAPSULE, CAPSULE), [(0.1, 0.3, 0.0), (0.1, 0.4, 0.0)], poses, dtype)
  (p, q), (r, s) = poses[0], (rotation[:, 2] for rotation in poses[1])
  t = np.linspace(-1, 1, 401)
  one = p[..., None] + r[..., None] * 0.3 * t
  best = np.full(300, np.inf)
  for u in np.linspace(-1, 1, 401):
    two = q + s * 0.4 * u
    best = np.minimum(best, np.sqrt(((one - two[..., None]) ** 2).sum(0)).min(-1))
  distance = np.linalg.norm(found[:3], axis=0)
  assert (found[6:8] == 0).all()
  assert (np.abs(distance - best) < 2e-3).all()  # of a grid with steps of 2 mm
  assert (distance < best + 1e-5).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_points_of_boxes_lie_on_both(dtype):
  sizes, poses = [(0.1, 0.2, 0.3), (0.2, 0.1, 0.15)], random_poses(300, 0.6)
  found = run(measured(), (BOX, BOX), sizes, poses, dtype)
  apart, on_a = found[:3], found[3:6]
  outside = found[6] == 0
  assert 100 < outside.sum() < 300
  for point, box in ((on_a, 0), (on_a - apart, 1)):
    level = inside_box(point, poses[0][box], poses[1][box], sizes[box])
    assert np.abs(level[outside]).max() < 1e-5
  # a plane across the separation keeps them apart
  normal = apart / np.linalg.norm(apart, axis=0)
  for box, sign in ((0, 1), (1, -1)):
    extent = (np.abs(np.einsum("jil,jl->il", poses[1][box], normal)) * np.array(sizes[box])[:, None]).sum(0)
    room = sign * (normal * (poses[0][box] - (on_a if box == 0 else on_a - apart))).sum(0) - extent
    assert room[outside].min() > -1e-5


def test_a_point_is_as_far_from_a_cylinder_as_the_formula_says():
  poses = random_poses(300, 0.4)
  found = run(measured(), (SPHERE, CYLINDER), [(0.1, 0.0, 0.0), (0.2, 0.3, 0.0)], poses)
  local = np.einsum("jil,jl->il", poses[1][1], poses[0][0] - poses[0][1])
  across, above = np.hypot(local[0], local[1]) - 0.2, np.abs(local[2]) - 0.3
  expected = np.hypot(np.maximum(across, 0), np.maximum(above, 0))
  outside = found[6] == 0
  np.testing.assert_array_equal(outside, expected > 0)
  np.testing.assert_allclose(np.linalg.norm(found[:3], axis=0)[outside], expected[outside], atol=1e-9)


def test_what_is_beyond_reach_ends_early():
  poses = random_poses(300, 0.6)
  sizes = [(0.1, 0.2, 0.05), (0.2, 0.1, 0.15)]
  near, all_of_them = (run(measured(reach), (ELLIPSOID, BOX), sizes, poses) for reach in (0.1, REACH))
  distance = np.linalg.norm(all_of_them[:3], axis=0)
  np.testing.assert_array_equal(near[7] == 1, (distance > 0.1) & (all_of_them[6] == 0))


def test_vertices_tell_the_part_that_is_closest():
  positions, rotations = random_poses(1, 1.0)
  positions[:, :, 0] = [[0.0, 0.0, 0.0], [0.05, 0.06, 1.0]]
  rotations[:, :, :, 0] = np.eye(3)
  sizes = [(0.2, 0.2, 0.2), (0.1, 0.3, 0.0)]
  found = run(measured(), (BOX, CAPSULE), sizes, (positions, rotations))[:, 0]
  assert {int(vertex) & 4 for vertex in found[8:11]} == {4}  # of the upper face
  assert set(found[11:]) == {0.0}  # the capsule's lower end
  np.testing.assert_allclose(found[:3], [0, 0, -0.5], atol=1e-9)
