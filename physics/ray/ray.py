"""Intersections of rays with shapes.

A ray starts at an origin and runs along a direction, both in a shape's own frame. Functions return the
distance to the nearest point of the surface in lengths of the direction, `NONE` where there is none: MuJoCo's
`mj_ray`. Surfaces are met from both sides, planes from their front alone.
A `size` [3] is `geom_size` [m], and so are radii and half lengths.
"""

from collections.abc import Iterable
from functools import reduce

from physics.algebra.spatial import MINVAL, Vector, cross, dot
from physics.trace.trace import Number, Truth, absolute, maximum, minimum, sqrt, where

NONE = 1e10  # distance where a ray meets nothing


def ray_plane(origin: Vector, direction: Vector, size: tuple[Number, Number, Number]) -> Number:
  """Return the distance to a plane's front, within its rendered rectangle where the sizes are positive."""
  falls = direction[2] < -MINVAL
  t = -origin[2] / where(falls, direction[2], -1.0)
  hit = falls & (t >= 0.0)
  for i in range(2):
    within = absolute(origin[i] + t * direction[i]) <= size[i]
    hit = hit & ((size[i] <= 0.0) | within)
  return where(hit, t, NONE)


def ray_sphere(origin: Vector, direction: Vector, radius: Number) -> Number:
  """Return the distance to a sphere."""
  near, far = _roots(dot(direction, direction), dot(direction, origin), dot(origin, origin) - radius * radius)
  return _first(near, far)


def ray_ellipsoid(origin: Vector, direction: Vector, size: tuple[Number, Number, Number]) -> Number:
  """Return the distance to an ellipsoid: a unit sphere in stretched coordinates."""
  o, d = (Vector(*(x / s for x, s in zip(v, size, strict=True))) for v in (origin, direction))
  return ray_sphere(o, d, 1.0)


def ray_capsule(origin: Vector, direction: Vector, radius: Number, half: Number) -> Number:
  """Return the distance to a capsule along z."""
  best = _ray_tube(origin, direction, radius, half)
  for end in (1.0, -1.0):
    o = Vector(origin[0], origin[1], origin[2] - half * end)
    roots = _roots(dot(direction, direction), dot(direction, o), dot(o, o) - radius * radius)
    for t in roots:
      beyond = (o[2] + t * direction[2]) * end >= 0.0
      best = where((t >= 0.0) & beyond, minimum(best, t), best)
  return best


def ray_cylinder(origin: Vector, direction: Vector, radius: Number, half: Number) -> Number:
  """Return the distance to a cylinder along z."""
  best = _ray_tube(origin, direction, radius, half)
  crosses = absolute(direction[2]) > MINVAL
  for end in (1.0, -1.0):
    t = (half * end - origin[2]) / where(crosses, direction[2], 1.0)
    x, y = origin[0] + t * direction[0], origin[1] + t * direction[1]
    hit = crosses & (t >= 0.0) & (x * x + y * y <= radius * radius)
    best = where(hit, minimum(best, t), best)
  return best


def ray_box(origin: Vector, direction: Vector, size: tuple[Number, Number, Number]) -> Number:
  """Return the distance to a box."""
  return reduce(minimum, ray_box_faces(origin, direction, size))


def ray_box_faces(origin: Vector, direction: Vector, size: tuple[Number, Number, Number]) -> list[Number]:
  """Return the distance to each face [6] of a box: -x, x, -y, y, -z, z."""
  distances = []
  for i in range(3):
    crosses = absolute(direction[i]) > MINVAL
    for side in (-1.0, 1.0):
      t = (size[i] * side - origin[i]) / where(crosses, direction[i], 1.0)
      hit: Truth = crosses & (t >= 0.0)
      for j in {0, 1, 2} - {i}:
        hit = hit & (absolute(origin[j] + t * direction[j]) <= size[j])
      distances.append(where(hit, t, NONE))
  return distances


def ray_triangle(origin: Vector, direction: Vector, corners: Iterable[Vector]) -> Number:
  """Return the distance to a triangle (Moeller and Trumbore 1997)."""
  a, b, c = corners
  one, two, start = b - a, c - a, origin - a
  across, aside = cross(direction, two), cross(start, one)
  volume = dot(one, across)
  flat = absolute(volume) < 1e-20
  scale = 1.0 / where(flat, 1.0, volume)
  u, v, t = dot(start, across) * scale, dot(direction, aside) * scale, dot(two, aside) * scale
  hit = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t >= 0.0)
  return where(hit, where(flat, NONE, t), NONE)


def _ray_tube(origin: Vector, direction: Vector, radius: Number, half: Number) -> Number:
  """Return the distance to the round side of a cylinder along z."""
  a = direction[0] * direction[0] + direction[1] * direction[1]
  b = origin[0] * direction[0] + origin[1] * direction[1]
  c = origin[0] * origin[0] + origin[1] * origin[1] - radius * radius
  t = _first(*_roots(a, b, c))
  return where(absolute(origin[2] + t * direction[2]) <= half, t, NONE)


def _roots(a: Number, b: Number, c: Number) -> tuple[Number, Number]:
  """Return the solutions of a t^2 + 2 b t + c = 0, lesser first; both -1 where there are none."""
  square = b * b - a * c
  exist = (square >= 0.0) & (a >= MINVAL)
  root, scale = sqrt(maximum(square, 0.0)), 1.0 / where(a < MINVAL, 1.0, a)
  return where(exist, (-b - root) * scale, -1.0), where(exist, (-b + root) * scale, -1.0)


def _first(near: Number, far: Number) -> Number:
  """Return the lesser root that is not negative, else `NONE`."""
  return where(near >= 0.0, near, where(far >= 0.0, far, NONE))
