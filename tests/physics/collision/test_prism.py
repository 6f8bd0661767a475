"""Distances of prisms on plain numbers, against what a dense search finds."""

import numpy as np
import pytest

from physics.algebra.spatial import Vector, dot
from physics.collision.prism import Best, Prism, Solid, closest_on_lines, meet
from tests.physics.oracle import evaluate

PRISM = Prism(0.5, 0.3, -0.2, (0.1, 0.4, -0.1))
RANDOM = np.random.default_rng(0)
TURN = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3))).Q
AXES = tuple(Vector(*axis) for axis in (TURN * [[0.11], [0.09], [0.07]]).tolist())  # half axes of a box


def filling(prism, n=24):
  """Return points [k, 3] that fill a prism."""
  u, v, w = (x.ravel() for x in np.meshgrid(*[np.linspace(0, 1, n)] * 3))
  u, v, w = (x[u + v <= 1] for x in (u, v, w))
  corner, along_u, along_v = prism.heights
  top = corner + (along_u - corner) * u + (along_v - corner) * v
  return np.stack([u * prism.width, v * prism.depth, prism.base + w * (top - prism.base)], axis=1)


def test_faces_and_corners_fit_together():
  corners = np.array(PRISM.vertices)
  for normal, offset in PRISM.faces:
    heights = corners @ np.array(normal)
    assert heights.max() == pytest.approx(offset)
    assert (np.abs(heights - offset) < 1e-12).sum() in (3, 4)
    assert dot(normal, normal) == pytest.approx(1)
  assert {tuple(np.round(end, 9)) for start, span in PRISM.edges for end in (start, start + span)} == {
    tuple(np.round(corner, 9)) for corner in PRISM.vertices
  }


def test_the_furthest_corner():
  for direction in RANDOM.normal(size=(20, 3)):
    corner, height = PRISM.highest(Vector(*direction.tolist()))
    assert height == pytest.approx((np.array(PRISM.vertices) @ direction).max())
    assert height == pytest.approx(np.dot(corner, direction))


def test_the_closest_point_is_closer_than_all_others():
  points = filling(PRISM)
  for p in RANDOM.uniform(-0.6, 0.9, size=(200, 3)):
    found = np.array(PRISM.closest(Vector(*p.tolist())))
    nearest = np.linalg.norm(points - p, axis=1).min()
    inside = all(np.dot(normal, p) <= offset for normal, offset in PRISM.faces)
    assert np.linalg.norm(found - p) <= nearest + 1e-12
    assert nearest < np.linalg.norm(found - p) + 0.03
    assert all(np.dot(normal, found) <= offset + 1e-12 for normal, offset in PRISM.faces)
    assert inside == (np.linalg.norm(found - p) == 0)


def test_a_segment_through_the_inside():
  points = filling(PRISM, 60)
  for center, axis in RANDOM.uniform(-0.4, 0.6, size=(200, 2, 3)):
    at = center + np.linspace(-1, 1, 200)[:, None] * axis
    depths = np.min([offset - at @ np.array(normal) for normal, offset in PRISM.faces], axis=0)
    if abs(depths.max()) > 0.01:
      found = PRISM.contains_part(Vector(*center.tolist()), Vector(*axis.tolist()))
      assert found == (depths.max() > 0)
  assert PRISM.contains_part(Vector(*points.mean(axis=0).tolist()), Vector(0.0, 0.0, 0.0))


def test_closest_points_of_two_segments():
  s, t = np.linspace(-1, 1, 201), np.linspace(0, 1, 101)
  for start, span, center, axis in RANDOM.normal(size=(50, 4, 3)):
    foot, between = closest_on_lines(*(Vector(*x.tolist()) for x in (start, span, center, axis)))
    grid = (center + s[:, None, None] * axis) - (start + t[None, :, None] * span)
    nearest = np.linalg.norm(grid, axis=2).min()
    assert nearest - 0.02 < np.linalg.norm(between) <= nearest + 1e-12
    along = np.dot(np.array(foot) - start, span) / np.dot(span, span)
    np.testing.assert_allclose(foot, start + along * span, atol=1e-12)
    assert -1e-12 <= along <= 1 + 1e-12


def test_only_what_is_clearly_less_is_kept():
  def traced(program, x):
    best = Best(program)
    for value in (2.0 * x, 2.0 * x - 1e-7, x, 3.0 * x):
      best.offer(value, Vector(value, 0.0, 0.0), Vector(0.0, 0.0, value))
    value, one, two = best.result
    return [value, one[0], two[2]]

  np.testing.assert_array_equal(evaluate(traced, [1.0, -1.0]), [[1, -3]] * 3)


@pytest.mark.parametrize(("count", "radius", "reach"), [(0, 0.1, 0.0), (1, 0.05, 0.02)])
def test_quick_tests_keep_what_touches_and_drop_most_of_the_rest(count, radius, reach):
  def traced(program, x, y, z):
    solid = Solid(Vector(x, y, z), AXES[:count], radius)
    distance, *_ = meet(program, PRISM, solid)
    return [distance, PRISM.quick_distance(solid, reach)]

  near = RANDOM.uniform((-0.3, -0.3, -0.3), (0.8, 0.6, 0.6), size=(400, 3))
  distance, bound = evaluate(traced, *near.T)
  touches = distance < reach
  assert (bound[touches] <= distance[touches] + 1e-6).all()
  assert touches.sum() > 40
  assert (bound[~touches] < reach).mean() < 0.25
