"""Where geoms are, and the closest points of spheres and capsules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from physics.kinematics import Poses
from physics.model import Model
from physics.spatial import AXES, ZERO, Matrix, Quaternion, Vector, cross, dot, select, vector
from physics.trace import Number, Truth, absolute, clip, maximum, negate, sqrt, where

PLANE, SPHERE, CAPSULE = 0, 2, 3  # mjtGeom
PARALLEL = 1e-4  # angle [rad] below which capsules count as parallel, as in MuJoCo
COINCIDENT = 1e-6  # distance [m] below which points count as one


@dataclass(frozen=True)
class Shape:
  """A geom: centre, relative to a reference that both geoms of a pair share; axes; MuJoCo's sizes."""

  position: Vector
  rotation: Matrix  # geom to world: columns are the geom's axes
  size: tuple[Number, Number, Number]


@dataclass(frozen=True)
class Segment:
  """A sphere or capsule: centre, half axis (zero for a sphere), radius."""

  center: Vector
  half_axis: Vector
  radius: Number


def geom_segment(model: Model, p: Poses, geom: int) -> Segment:
  """Return a sphere or capsule relative to its tree's origin."""
  body = int(model.geom_bodyid[geom])
  center = p.relative(body, vector(model.geom_pos[geom]))
  if model.geom_type[geom] == SPHERE:
    return Segment(center, ZERO, float(model.geom_size[geom, 0]))
  axis = geom_axis(model, geom) * float(model.geom_size[geom, 1])
  return Segment(center, p.rotation[body] @ axis, float(model.geom_size[geom, 0]))


def geom_axis(model: Model, geom: int) -> Vector:
  """Return a geom's own z axis in its body's frame: a plane's normal, a capsule's direction."""
  axis = Quaternion.constant(model.geom_quat[geom]).matrix().column(2)
  return vector(np.asarray(axis, float))


def geom_bound(model: Model, geom: int) -> float:
  """Return the radius [m] of a sphere or capsule's bounding sphere."""
  radius, half = (float(x) for x in model.geom_size[geom, :2])
  return radius + (half if model.geom_type[geom] == CAPSULE else 0.0)


def tangents(normal: Vector, hint: Vector) -> tuple[Vector, Vector]:
  """Return two directions orthogonal to a unit normal, the first nearest to `hint` (x if they agree)."""
  flat = hint - normal * dot(normal, hint)
  square = dot(flat, flat)
  vanishes = square < 1e-30
  scale = 1.0 / sqrt(where(vanishes, 1.0, square))
  first = select(vanishes, AXES[0], flat * scale)
  return first, cross(normal, first)


def default_hint(normal: Vector) -> Vector:
  """Return the direction MuJoCo starts a contact frame from: y, or z if the normal is near y."""
  return select(absolute(normal[1]) < 0.5, AXES[1], AXES[2])


@dataclass(frozen=True)
class Touch:
  """A possible contact: the lanes that have it, and what computes its distance [m], normal and point."""

  active: Truth
  resolve: Callable[[], tuple[Number, Vector, Vector]]


def touch(one: Segment, two: Segment, at: tuple[Number, Number], margin: Number, counts: Truth) -> Touch:
  """Return the contact, normal from one to two, of the spheres at points in [-1, 1] of two segments."""
  point1, point2 = one.center + one.half_axis * at[0], two.center + two.half_axis * at[1]
  between, radii = point2 - point1, one.radius + two.radius
  square, reach = dot(between, between), radii + margin

  def resolve() -> tuple[Number, Vector, Vector]:
    length = sqrt(maximum(square, 1e-30))
    normal = select(square < COINCIDENT**2, _across(one, two), between * (1.0 / length))
    distance = length - radii
    return distance, normal, point1 + normal * (one.radius + 0.5 * distance)

  return Touch((square < reach * reach) & counts, resolve)


def _across(one: Segment, two: Segment) -> Vector:
  """Return the normal where points coincide, as axes that cross: across both, x if they are parallel.

  MuJoCo does so below 1e-15 m; float32 cannot tell points 1e-6 m apart from coinciding ones.
  """
  across = cross(one.half_axis, two.half_axis)
  square = dot(across, across)
  return select(square < 1e-20, AXES[0], across * (1.0 / sqrt(maximum(square, 1e-20))))


class SegmentPair:
  """Two segments and where they are closest.

  `inverses` are one over the squared lengths of the half axes, one for a sphere; `margin` [m] is the distance
  at which contact begins.
  """

  def __init__(self, one: Segment, two: Segment, inverses: tuple[Number, Number], margin: Number) -> None:
    self.one, self.two, self.inverses, self.margin = one, two, inverses, margin
    separation = one.center - two.center
    self.a, self.c = (dot(s.half_axis, s.half_axis) for s in (one, two))
    self.b = -dot(one.half_axis, two.half_axis)
    self.u, self.v = -dot(one.half_axis, separation), dot(two.half_axis, separation)

  def nearest(self, can_be_parallel: bool) -> tuple[Touch, Truth]:
    """Return the contact at the closest points, and the lanes with parallel capsules, which lack it."""
    across = cross(self.one.half_axis, self.two.half_axis)
    square = dot(across, across)  # a c - b b, without the cancellation where axes are near parallel
    parallel = (square < PARALLEL**2 * self.a * self.c) if can_be_parallel else False
    separation = self.one.center - self.two.center
    s = clip(dot(cross(self.two.half_axis, separation), across) / maximum(square, 1e-30), -1.0, 1.0)
    t = self._second(s)
    return touch(self.one, self.two, (self._first(t), t), self.margin, negate(parallel)), parallel

  def at_ends(self, parallel: Truth) -> Iterator[Touch]:
    """Yield the contacts of parallel capsules: at the two ends of where they lie side by side."""
    for end in (-1.0, 1.0):
      s = self._first(end)
      t = where(absolute(s) < 1.0, end, self._second(s))
      yield touch(self.one, self.two, (s, t), self.margin, parallel)

  def _first(self, t: Number) -> Number:
    return clip((self.u - self.b * t) * self.inverses[0], -1.0, 1.0)

  def _second(self, s: Number) -> Number:
    return clip((self.v - self.b * s) * self.inverses[1], -1.0, 1.0)


def inverse_square(model: Model, geom: int) -> float:
  """Return one over the squared half length [1/m^2] of a capsule, one for a sphere."""
  return 1.0 / float(model.geom_size[geom, 1]) ** 2 if model.geom_type[geom] == CAPSULE else 1.0
