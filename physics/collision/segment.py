"""Contacts among spheres and capsules: a sphere is a capsule of length zero."""

from collections.abc import Iterator
from dataclasses import dataclass

from physics.algebra.spatial import AXES, Vector, cross, dot, select
from physics.collision.geometry import ContactCandidate, Shape
from physics.trace.trace import Number, Program, Truth, absolute, clip, maximum, sqrt, where

PARALLEL = 1e-4  # angle [rad] below which capsules count as parallel, as in MuJoCo
COINCIDENT = 1e-6  # distance [m] below which points count as one


@dataclass(frozen=True)
class Segment:
  """A sphere or capsule: centre [m], half axis [m] (zero for a sphere), radius [m], axis of its geom."""

  center: Vector
  half_axis: Vector
  radius: Number
  axis: Vector = AXES[2]

  @staticmethod
  def of(shape: Shape) -> "Segment":
    """Return the segment of a sphere or capsule; the second size of a sphere is zero."""
    axis = shape.rotation.column(2)
    return Segment(shape.position, axis * shape.size[1], shape.size[0], axis)


def segments(program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contact of spheres or capsules at their closest points; two of parallel capsules.

  MuJoCo's `mjc_SphereSphere`, `mjc_SphereCapsule` and `mjc_CapsuleCapsule`.
  """
  pair = SegmentPair(Segment.of(one), Segment.of(two), margin)
  yield pair.first()
  if pair.parallel is not False:
    with program.when_any(pair.parallel):
      yield pair.last()


def candidate(one: Segment, two: Segment, at: tuple[Number, Number], margin: Number) -> ContactCandidate:
  """Return the contact, normal from one to two, of the spheres at points in [-1, 1] of two segments."""
  point1, point2 = one.center + one.half_axis * at[0], two.center + two.half_axis * at[1]
  between, radii = point2 - point1, one.radius + two.radius
  square, reach = dot(between, between), radii + margin

  def resolve() -> tuple[Number, Vector, Vector]:
    length = sqrt(maximum(square, 1e-30))
    normal = select(square < COINCIDENT**2, _across(one, two), between * (1.0 / length))
    distance = length - radii
    return distance, normal, point1 + normal * (one.radius + 0.5 * distance)

  return ContactCandidate(square < reach * reach, resolve)


def _across(one: Segment, two: Segment) -> Vector:
  """Return the normal for coinciding points: across both geoms' axes, or x if they are parallel.

  MuJoCo does so below 1e-15 m; float32 cannot tell points 1e-6 m apart from coinciding ones.
  """
  across = cross(one.axis, two.axis)
  square = dot(across, across)
  return select(square < 1e-20, AXES[0], across * (1.0 / sqrt(maximum(square, 1e-20))))


class SegmentPair:
  """Two segments and their closest points; `margin` [m] is the distance at which contact begins."""

  def __init__(self, one: Segment, two: Segment, margin: Number) -> None:
    self.one, self.two, self.margin = one, two, margin
    separation = one.center - two.center
    a, c = (dot(s.half_axis, s.half_axis) for s in (one, two))
    self.inverses = (1.0 / maximum(a, 1e-20), 1.0 / maximum(c, 1e-20))
    self.b = -dot(one.half_axis, two.half_axis)
    self.u, self.v = -dot(one.half_axis, separation), dot(two.half_axis, separation)
    self.across = cross(one.half_axis, two.half_axis)
    self.square = dot(self.across, self.across)  # a c - b b, without the cancellation where axes align
    self.parallel: Truth = self.square < PARALLEL**2 * (a * c)

  def first(self) -> ContactCandidate:
    """Return the contact at the closest points; of parallel capsules, at one end of where they overlap."""
    separation = self.one.center - self.two.center
    along = dot(cross(self.two.half_axis, separation), self.across)
    t = self._second(clip(along / maximum(self.square, 1e-30), -1.0, 1.0))
    s = self._first(t)
    if self.parallel is not False:
      end_s, end_t = self._at_end(-1.0)
      s, t = where(self.parallel, end_s, s), where(self.parallel, end_t, t)
    return candidate(self.one, self.two, (s, t), self.margin)

  def last(self) -> ContactCandidate:
    """Return the contact of parallel capsules at the other end."""
    ends = candidate(self.one, self.two, self._at_end(1.0), self.margin)
    return ContactCandidate(ends.active & self.parallel, ends.resolve)

  def _at_end(self, end: float) -> tuple[Number, Number]:
    s = self._first(end)
    return s, where(absolute(s) < 1.0, end, self._second(s))

  def _first(self, t: Number) -> Number:
    return clip((self.u - self.b * t) * self.inverses[0], -1.0, 1.0)

  def _second(self, s: Number) -> Number:
    return clip((self.v - self.b * s) * self.inverses[1], -1.0, 1.0)
