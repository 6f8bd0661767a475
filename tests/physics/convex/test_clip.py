"""Polygons of lanes: cut by planes, and four corners of many."""

import numpy as np

from physics.algebra.spatial import Vector
from physics.convex.clip import Polygon, clip, spread
from physics.trace.trace import where
from tests.physics.oracle import evaluate

UP = Vector(0.0, 0.0, 1.0)


def regular(count, radius=1.0, turn=0.0):
  """Return the corners of a regular polygon."""
  angles = turn + 2 * np.pi * np.arange(count) / count
  return [Vector(float(radius * np.cos(a)), float(radius * np.sin(a)), 0.0) for a in angles]


def cut(corners, planes):
  """Return count and corners of a polygon that planes have cut; each is an offset and an angle, [lane]."""

  def traced(program, *numbers):
    polygon = Polygon(program, 17)
    for corner in corners:
      polygon.push(corner, True)
    for offset, x, y in zip(*[iter(numbers)] * 3, strict=True):
      inward = Vector(-x, -y, 0.0)
      clip(polygon, Vector(x * offset, y * offset, 0.0), inward, polygon.count > 0.0)
    shown = [polygon.at(k) for k in range(12)]
    return [polygon.count, *(x for corner in shown for x in corner)]

  columns = [
    f(np.asarray(plane[i], float))
    for plane in planes
    for i, f in ((0, lambda x: x), (1, np.cos), (1, np.sin))
  ]
  count, *rest = evaluate(traced, *columns)
  points = np.array(rest).reshape(12, 3, -1).transpose(2, 0, 1)
  return [row[: int(n), :2] for n, row in zip(count, points, strict=True)]


def area(points):
  x, y = np.asarray(points).T
  return 0.5 * abs(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def test_a_square_is_cut_to_an_octagon():
  reach = 2**0.5 / 2  # of the square with corners at distance 1
  planes = [([reach], [np.pi / 2 * k]) for k in range(4)]
  (octagon,) = cut(regular(4), planes)
  assert len(octagon) == 8
  np.testing.assert_allclose(area(octagon), 8 * (2**0.5 - 1) * reach**2, rtol=1e-12)


def test_each_lane_has_its_own_plane():
  beyond, half, nothing = cut(regular(4, turn=np.pi / 4), [([2.0, 0.0, -2.0], [0.0, 0.0, 0.0])])
  np.testing.assert_allclose(area(beyond), 2.0)
  np.testing.assert_allclose(area(half), 1.0)
  assert len(nothing) == 0


def test_random_cuts_keep_what_is_inside_of_all_planes():
  random = np.random.default_rng(0)
  planes = [(random.uniform(0.2, 1, 200), random.uniform(0, 2 * np.pi, 200)) for _ in range(5)]
  samples = random.uniform(-1, 1, size=(4000, 2))
  for lane, polygon in enumerate(cut(regular(6), planes)):
    normals = [(np.cos(np.pi / 6 + np.pi / 3 * k), np.sin(np.pi / 6 + np.pi / 3 * k)) for k in range(6)]
    inside = (samples @ np.array(normals).T < np.cos(np.pi / 6)).all(1)
    for offset, angle in planes:
      inside &= samples @ [np.cos(angle[lane]), np.sin(angle[lane])] < offset[lane]
    assert abs(area(polygon) - 4 * inside.mean()) < 0.12


def test_four_corners_of_many_are_far_apart_and_hold_the_lowest():
  def traced(program, tilt):
    polygon = Polygon(program, 13)
    for x, y, _ in regular(12, turn=0.1):
      polygon.push(Vector(x, y, x * tilt), True)
    return [x for corner in spread(polygon, where(tilt > -9.0, 1.0, 0.0) > 0.5, UP) for x in corner]

  corners = evaluate(traced, [0.0, 0.1, -0.1]).reshape(4, 3, 3)
  for lane, lowest in ((1, -1), (2, 1)):
    points = corners[..., lane]
    assert np.sign(points[0, 0]) == lowest
    assert abs(points[0, 0]) > 0.95
    assert len({tuple(point) for point in points.round(9)}) == 4
    around = points[np.argsort(np.arctan2(points[:, 1], points[:, 0])), :2]
    assert area(around) > 1.8  # of 2, the largest square inside
