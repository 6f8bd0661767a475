"""Where geoms are, and the closest points of spheres and capsules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from physics.kinematics import Poses
from physics.model import Model
from physics.spatial import AXES, ZERO, Quaternion, Vector, cross, dot, select, vector
from physics.trace import Number, Truth, absolute, clip, maximum, negate, sqrt, where

PLANE, SPHERE, CAPSULE = 0, 2, 3  # mjtGeom


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
  """Return two directions orthogonal to a unit normal, the first nearest to `hint`; x if the hint is the normal."""
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
  """A possible contact of two round geoms, in the lanes where `counts` holds."""

  distance: Number  # [m]
  normal: Vector  # from the first to the second
  point: Vector
  counts: Truth


def touch(one: Segment, two: Segment, s: Number, t: Number, counts: Truth) -> Touch:
  """Return the contact of the spheres at parameters s and t in [-1, 1] along two segments."""
  point1, point2 = one.center + one.half_axis * s, two.center + two.half_axis * t
  between = point2 - point1
  length = sqrt(maximum(dot(between, between), 1e-30))
  normal = between * (1.0 / length)
  distance = length - (one.radius + two.radius)
  return Touch(distance, normal, point1 + normal * (one.radius + 0.5 * distance), counts)


def touch_segments(
  one: Segment, two: Segment, squares: tuple[Number, Number], can_be_parallel: bool
) -> tuple[Touch, Callable[[Number], Iterator[Touch]]]:
  """Return the contact at the closest points, and what gives the contacts at the ends in lanes with parallel capsules.

  `squares` are the squared lengths of the half axes, one for a sphere. The second value, called with the margin [m],
  yields four candidates of which at most two count, as MuJoCo chooses them.
  """
  a, c = squares
  separation = one.center - two.center
  b = -dot(one.half_axis, two.half_axis)
  u, v = -dot(one.half_axis, separation), dot(two.half_axis, separation)
  determinant = a * c - b * b
  parallel = absolute(determinant) < 1e-15 if can_be_parallel else False
  s = clip((c * u - b * v) / where(parallel, 1.0, determinant), -1.0, 1.0)
  t = clip((v - b * s) / c, -1.0, 1.0)
  s = clip((u - b * t) / a, -1.0, 1.0)

  def at_ends(margin: Number) -> Iterator[Touch]:
    taken: Number = 0.0
    for end in (1.0, -1.0):
      yield (found := touch(one, two, end, clip((v - end * b) / c, -1.0, 1.0), parallel & (taken < 1.5)))
      taken = taken + where((found.distance < margin) & found.counts, 1.0, 0.0)
    for end in (1.0, -1.0):
      yield (found := touch(one, two, clip((u - end * b) / a, -1.0, 1.0), end, parallel & (taken < 1.5)))
      taken = taken + where((found.distance < margin) & found.counts, 1.0, 0.0)

  return touch(one, two, s, t, negate(parallel)), at_ends
