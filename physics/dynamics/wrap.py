"""Wrapping of a tendon around a sphere or a cylinder, or through it.

Source: MuJoCo's XML Reference, tendon/spatial/geom and its attribute sidesite. The path is planar: in the
plane of both ends and a sphere's centre, or across a cylinder's axis, along which it climbs evenly.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

from physics.algebra.spatial import MINVAL, Matrix, Vector, cross, dot, select
from physics.trace.trace import Number, Truth, absolute, atan2, clip, cos, maximum, negate, sin, sqrt, where

Point: TypeAlias = tuple[Number, Number]  # in the plane of the path [m]

NEWTON = 12  # iterations of the search for the point of an inside wrap


@dataclass(frozen=True)
class Wrap:
  """Where a tendon touches a geom; relative to its centre, in world axes [m]."""

  wraps: Truth  # otherwise the path is straight
  points: tuple[Vector, Vector]  # the first and the last one
  length: Number  # of the part between them [m]


@dataclass(frozen=True)
class _Arc:
  """A path around a circle: whether there is one, its first and last point, and its length [m]."""

  wraps: Truth
  points: tuple[Point, Point]
  length: Number


def wrap(
  axis: Matrix | None,
  radius: Number,
  ends: tuple[Vector, Vector],
  side: Vector | None = None,
  inside: bool = False,
) -> Wrap:
  """Return how a tendon between two ends wraps around a geom, or through it if `inside`.

  Ends and `side` are relative to the geom's centre, in world axes [m]. The tendon goes around the geom the
  way that leads from the first end by `side` to the second. `axis` is a cylinder's rotation to the world;
  None: a sphere.
  """
  x, y, z = axis.transposed if axis else _plane(*ends)
  one, two = ((dot(end, x), dot(end, y)) for end in ends)
  if inside:
    around = _through(one, two, radius)
  else:
    by = None if side is None else (dot(side, x), dot(side, y))
    around = _around(one, two, by, radius)
  points = [x * point[0] + y * point[1] for point in around.points]
  length = around.length
  if axis:
    first, last = (_distance(*pair) for pair in zip((one, two), around.points, strict=True))
    low, high = (dot(end, z) for end in ends)
    climb = (high - low) / maximum(first + length + last, MINVAL)
    points = [points[0] + z * (low + climb * first), points[1] + z * (low + climb * (first + length))]
    length = length * sqrt(1.0 + climb * climb)
  return Wrap(around.wraps, (points[0], points[1]), length)


def _plane(one: Vector, two: Vector) -> tuple[Vector, Vector, Vector]:
  """Return axes of the plane of two points and the centre, the first through `one`."""
  x = _normalized(one)
  normal = cross(one, two)
  # Where both lie on one line through the centre, MuJoCo's choice of a plane.
  size = [absolute(component) for component in x]
  is_x, is_z = (size[0] >= size[1]) & (size[0] >= size[2]), (size[2] > size[0]) & (size[2] > size[1])
  other = select(is_x, Vector(0.0, 1.0, 1.0), select(is_z, Vector(1.0, 1.0, 0.0), Vector(1.0, 0.0, 1.0)))
  normal = _normalized(select(dot(normal, normal) < MINVAL * MINVAL, cross(x, other), normal))
  return x, _normalized(cross(normal, x)), normal


def _around(one: Point, two: Point, side: Point | None, radius: Number) -> _Arc:
  """Return the path around a circle: the shorter way, or the way by a side point.

  Seen from the centre, the way turns by some angle. The straight parts up to the circle cover
  acos(radius / distance) of it on each end; the rest is the arc.
  """
  way = _angle(one, two) if side is None else _angle(one, side) + _angle(side, two)
  lengths = [sqrt(_dot(end, end)) for end in (one, two)]
  square = radius * radius
  reach = [atan2(sqrt(maximum(_dot(end, end) - square, 0.0)), radius) for end in (one, two)]
  arc = absolute(way) - reach[0] - reach[1]
  turn = where(way < 0.0, -1.0, 1.0)
  points = [
    _turned(end, turn * sign * angle, radius / maximum(length, MINVAL))
    for end, sign, angle, length in zip((one, two), (1.0, -1.0), reach, lengths, strict=True)
  ]
  wraps = (arc > 0.0) & (lengths[0] >= radius) & (lengths[1] >= radius)
  return _Arc(wraps, (points[0], points[1]), radius * arc)


def _through(one: Point, two: Point, radius: Number) -> _Arc:
  """Return the path that touches a circle from within at one point, where it has equal angles to both ends.

  Seen from the centre, the angle between the ends is 2 t - asin(A sin t) - asin(B sin t), where t is the
  angle between the tendon and the radius through the point, and A and B are the radius over the ends'
  distances. Newton's method falls to the root from t = 90 degrees, as the difference is concave.
  """
  lengths = [sqrt(_dot(end, end)) for end in (one, two)]
  ratios = [clip(radius / maximum(length, MINVAL), 0.0, 1.0) for length in lengths]
  angle = _angle(one, two)
  t: Number = 0.5 * math.pi
  for _ in range(NEWTON):
    s, c = sin(t), cos(t)
    cosines = [sqrt(maximum(1.0 - (a * s) * (a * s), MINVAL)) for a in ratios]
    parts = [atan2(a * s, cosine) for a, cosine in zip(ratios, cosines, strict=True)]
    slope = sum(a * c / cosine for a, cosine in zip(ratios, cosines, strict=True)) - 2.0
    left = absolute(angle) - 2.0 * t + parts[0] + parts[1]
    t = clip(where(slope < -MINVAL, t - left / where(slope < -MINVAL, slope, -1.0), t), 0.0, 0.5 * math.pi)
  s = sin(t)
  a = ratios[0] * s
  turn = (t - atan2(a, sqrt(maximum(1.0 - a * a, 0.0)))) * where(angle < 0.0, -1.0, 1.0)
  point = _turned(one, turn, ratios[0])
  between = (two[0] - one[0], two[1] - one[1])
  apart = _dot(between, between)
  at = clip(-_dot(between, one) / maximum(apart, MINVAL), 0.0, 1.0)
  nearest = (one[0] + at * between[0], one[1] + at * between[1])
  wraps = negate(_dot(nearest, nearest) <= radius * radius)
  return _Arc(wraps, (point, point), 0.0)


def _angle(one: Point, two: Point) -> Number:
  """Return the angle [rad] from one point to another about the centre, in (-pi, pi]."""
  return atan2(one[0] * two[1] - one[1] * two[0], _dot(one, two))


def _turned(point: Point, angle: Number, factor: Number) -> Point:
  """Return a point turned about the centre, its distance scaled by a factor."""
  c, s = factor * cos(angle), factor * sin(angle)
  return c * point[0] - s * point[1], s * point[0] + c * point[1]


def _distance(a: Point, b: Point) -> Number:
  between = (a[0] - b[0], a[1] - b[1])
  return sqrt(_dot(between, between))


def _dot(a: Point, b: Point) -> Number:
  return a[0] * b[0] + a[1] * b[1]


def _normalized(a: Vector) -> Vector:
  return a * (1.0 / maximum(sqrt(dot(a, a)), MINVAL))
