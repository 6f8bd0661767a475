"""Contacts of spheres and capsules with cylinders.

MuJoCo finds the contacts of capsules by general convex algorithms, within a tolerance; here formulas give
their results. A capsule that nearly lies on a cap gets two contacts, at the ends of its part over the cap,
which counts as a polygon of sixteen sides. Any other capsule gets one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from physics.algebra.spatial import MINVAL, Vector, cross, dot, select
from physics.collision.geometry import ContactCandidate, Shape
from physics.trace.trace import (
  Array,
  Number,
  Program,
  Truth,
  absolute,
  clip,
  cos,
  maximum,
  minimum,
  sin,
  sqrt,
  where,
)

LYING = 0.0888  # sine of the angle between a capsule and a cap below which it lies on it, as in MuJoCo
SIDES = 16  # of the polygon that a cap counts as, the first corner along x
FLAT = 1e-6  # slope below which a segment is equally far everywhere, or a direction horizontal
HALVINGS = 24  # to find the nearest position
ROUNDS, DIRECTIONS = 5, 32  # to find the shortest way out across the axis
FAR = 1e10  # more than any distance [m]


@dataclass(frozen=True)
class _Cylinder:
  """A cylinder in its own frame."""

  radius: Number
  half: Number

  def approach(self, point: Vector) -> tuple[Number, Vector]:
    """Return a point's distance [m] from the surface, negative inside, and the direction inwards."""
    x, y, z = point
    across = sqrt(maximum(x * x + y * y, MINVAL * MINVAL))
    beside, above = across - self.radius, absolute(z) - self.half
    at_rim = (beside >= 0.0) & (above >= 0.0)
    slant = sqrt(maximum(beside * beside + above * above, MINVAL * MINVAL))
    by_side, by_cap = (
      where(at_rim, e / slant, where(beside < above, f, 1.0 - f)) for e, f in ((beside, 0.0), (above, 1.0))
    )
    x, y = (where(across > MINVAL, c / across, unit) for c, unit in ((x, -1.0), (y, 0.0)))
    direction = Vector(-x * by_side, -y * by_side, where(z > 0.0, -by_cap, by_cap))
    return where(at_rim, slant, maximum(beside, above)), direction

  def extent(self, direction: Vector) -> Number:
    """Return how far [m] the cylinder reaches from its centre along a unit direction."""
    x, y, z = direction
    return self.radius * sqrt(x * x + y * y) + self.half * absolute(z)

  def slope(self, point: Vector, way: Vector) -> tuple[Number, Number]:
    """Return the slope of half the squared distance along a way, and an upper bound of the distance."""
    x, y, z = point
    across = sqrt(maximum(x * x + y * y, MINVAL * MINVAL))
    beside, above = maximum(across - self.radius, 0.0), maximum(absolute(z) - self.half, 0.0)
    outwards = beside * ((x * way[0] + y * way[1]) / across)
    return outwards + above * where(z > 0.0, way[2], -way[2]), beside + above


def sphere_cylinder(_program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contact of a sphere with a cylinder (MuJoCo's `mjc_SphereCylinder`)."""
  radius, (size, half, _) = one.size[0], two.size
  local = two.rotation.transposed @ (one.position - two.position)
  level, direction = _Cylinder(size, half).approach(local)

  def resolve() -> tuple[Number, Vector, Vector]:
    normal, distance = two.rotation @ direction, level - radius
    return distance, normal, one.position + normal * (radius + 0.5 * distance)

  yield ContactCandidate(level - radius < margin, resolve)


def capsule_cylinder(program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contacts of a capsule with a cylinder."""
  to_cylinder = two.rotation.transposed
  center = to_cylinder @ (one.position - two.position)
  half_axis = to_cylinder @ (one.rotation.column(2) * one.size[1])
  pair = _Pair(program, _Cylinder(two.size[0], two.size[1]), center, half_axis, one.size[0])
  pair.approach()
  with program.when_any(pair.state[0] < 0.0):
    pair.escape(pair.state[0] < 0.0)
  with program.when_any(pair.state[0] - one.size[0] < margin):
    pair.touch_once(margin)
    lies = (absolute(half_axis[2]) < LYING * one.size[1]) & (absolute(pair.state[4]) > FLAT)
    with program.when_any(lies):
      pair.touch_twice(lies, margin)
    with program.loop(2) as i:
      exists, distance, *point = pair.contacts.read(i * 5, 5)
      yield _in_world(two, exists > 0.0, distance, Vector(*pair.normal.read()), Vector(*point))


def _in_world(
  cylinder: Shape, exists: Truth, distance: Number, normal: Vector, point: Vector
) -> ContactCandidate:
  def resolve() -> tuple[Number, Vector, Vector]:
    return distance, cylinder.rotation @ normal, cylinder.position + cylinder.rotation @ point

  return ContactCandidate(exists, resolve)


class _Pair:
  """A capsule and a cylinder, in the cylinder's frame.

  `state` holds the distance [m] of the capsule's axis from the cylinder, negative inside; the position in
  [-1, 1] on the axis; and the direction of contact, from the axis into the cylinder.
  """

  def __init__(
    self, program: Program, cylinder: _Cylinder, center: Vector, half_axis: Vector, radius: Number
  ) -> None:
    self.program, self.cylinder, self.radius = program, cylinder, radius
    self.center, self.half_axis = center, half_axis
    self.square = dot(half_axis, half_axis)
    self.state = program.array(5)
    self.normal = program.array(3)
    self.contacts = program.array(10)  # twice: 1 if there is one, distance, point

  def _point(self, position: Number) -> Vector:
    return self.center + self.half_axis * position

  def approach(self) -> None:
    """Find the middle of the stretch of the axis that is nearest to the cylinder.

    Distance from a convex body is convex: its slope is negative before and positive after that stretch.
    """
    bounds = self.program.array(4)  # of the beginning of the stretch, and of its end
    bounds.fill([-1.0, 1.0, -1.0, 1.0])
    flat = FLAT * sqrt(self.square)
    with self.program.loop(HALVINGS):
      for first, bias in ((0, -flat), (2, flat)):
        low, high = bounds.read(first, 2)
        middle = 0.5 * (low + high)
        slope, distance = self.cylinder.slope(self._point(middle), self.half_axis)
        before = slope < bias * (distance + MINVAL)
        bounds[first], bounds[first + 1] = where(before, middle, low), where(before, high, middle)
    position = 0.25 * (bounds[0] + bounds[1] + bounds[2] + bounds[3])
    level, direction = self.cylinder.approach(self._point(position))
    self.state.fill([level, position, *direction])

  def escape(self, inside: Truth) -> None:
    """Find the shortest way out for an axis that reaches inside: across the axis, past a cap, off a tip."""
    level, middle = self.state.read(0, 2)
    self.state[0] = where(inside, -FAR, level)
    self._try_across(inside, middle)
    self._try(inside, Vector(0.0, 0.0, where(self.center[2] > 0.0, -1.0, 1.0)))
    for end in (-1.0, 1.0):
      x, y, _ = self._point(end)
      across = 1.0 / sqrt(maximum(x * x + y * y, MINVAL * MINVAL))
      self._try(inside, Vector(-x * across, -y * across, 0.0))

  def _try(self, counts: Truth, direction: Vector) -> Truth:
    """Store a direction if the way out against it is shorter than before; return where it is."""
    along = dot(direction, self.half_axis)
    level = -dot(direction, self.center) - absolute(along) - self.cylinder.extent(direction)
    shorter = counts & (level > self.state[0])
    _replace(self.state, shorter, (level, where(along < 0.0, -1.0, 1.0), *direction))
    return shorter

  def _try_across(self, counts: Truth, middle: Number) -> None:
    """Try directions across the axis: all around, then ever closer to the best.

    `middle` is the position of the middle of the part that is inside.
    """
    x, y, z = self.half_axis * (1.0 / sqrt(self.square))
    across = sqrt(maximum(x * x + y * y, MINVAL))
    stands = across < FLAT
    side = Vector(where(stands, 1.0, -y / across), where(stands, 0.0, x / across), 0.0)
    up = cross(Vector(x, y, z), side)
    best, span = self.program.variable(0.0), self.program.variable(math.pi)
    with self.program.loop(ROUNDS):
      center = best[0]
      with self.program.loop(DIRECTIONS) as k:
        step = self.program.table([2 * i / DIRECTIONS - 1 for i in range(DIRECTIONS)], k)
        angle = center + span[0] * step
        direction = side * cos(angle) + up * sin(angle)
        shorter = self._try(counts, direction)
        best[0] = where(shorter, angle, best[0])
        position = where(stands, middle, self._beside(direction))
        self.state[1] = where(shorter, position, self.state[1])
      span[0] = span[0] * (4.0 / DIRECTIONS)

  def _beside(self, direction: Vector) -> Number:
    """Return the position on the axis beside the cylinder's point that is furthest against a direction.

    Against a horizontal direction a whole line is furthest; heights do not matter there.
    """
    x, y, z = direction
    across = self.cylinder.radius / sqrt(maximum(x * x + y * y, MINVAL * MINVAL))
    rim = where(z > 0.0, -self.cylinder.half, self.cylinder.half)
    to_rim = Vector(-x * across, -y * across, rim) - self.center
    ahead = Vector(self.half_axis[0], self.half_axis[1], where(absolute(z) < FLAT, 0.0, self.half_axis[2]))
    return clip(dot(to_rim, ahead) / maximum(dot(ahead, ahead), MINVAL), -1.0, 1.0)

  def touch_once(self, margin: Number) -> None:
    """Store the contact where the axis is nearest."""
    level, position, *direction = self.state.read()
    distance, normal = level - self.radius, Vector(*direction)
    point = self._point(position) + normal * (self.radius + 0.5 * distance)
    self.normal.fill(normal)
    self.contacts.fill([where(distance < margin, 1.0, 0.0), distance, *point] + [0.0] * 5)

  def touch_twice(self, lies: Truth, margin: Number) -> None:
    """Store two contacts instead for a capsule that lies on a cap, if it overlaps with the cap.

    They are the ends of the part of its lowest line that is over the cap. If only one end touches, it counts
    twice unless it is a tip of the capsule. MuJoCo grows both shapes by half the margin.
    """
    direction = Vector(*self.state.read(2, 3))
    up = where(direction[2] > 0.0, -1.0, 1.0)
    across = direction - self.half_axis * (dot(direction, self.half_axis) / self.square)
    line = self.center + across * (self.radius + 0.5 * margin)
    enter, leave = self._over_cap(line)
    ends = [line + self.half_axis * position for position in (enter, leave)]
    depths = [up * end[2] - (self.cylinder.half + 0.5 * margin) for end in ends]
    one, two = (depth < 0.0 for depth in depths)
    lies = lies & (enter <= leave) & (one | two)
    both = (one | (leave < 1.0)) & (two | (enter > -1.0))
    points = [Vector(x, y, z - 0.5 * up * depth) for (x, y, z), depth in zip(ends, depths, strict=True)]
    first = (1.0, margin + where(one, depths[0], depths[1]), *select(one, *points))
    second = (
      where(both, 1.0, 0.0),
      margin + where(two, depths[1], depths[0]),
      *select(two, points[1], points[0]),
    )
    _replace(self.contacts, lies, (*first, *second))
    _replace(self.normal, lies, (0.0, 0.0, -up))

  def _over_cap(self, line: Vector) -> tuple[Number, Number]:
    """Return the first and last position in [-1, 1] on a line along the axis that is over a cap's polygon."""
    positions, angles = self.program.array(2), [(2 * i + 1) * math.pi / SIDES for i in range(SIDES)]
    positions.fill([-1.0, 1.0])
    with self.program.loop(SIDES) as side:
      x, y = (self.program.table([f(angle) for angle in angles], side) for f in (math.cos, math.sin))
      outside = x * line[0] + y * line[1] - self.cylinder.radius * math.cos(math.pi / SIDES)
      outwards = x * self.half_axis[0] + y * self.half_axis[1]
      crossing = -outside / where(absolute(outwards) < MINVAL, MINVAL, outwards)
      positions[0] = where(outwards < 0.0, maximum(positions[0], crossing), positions[0])
      positions[1] = where(outwards < 0.0, positions[1], minimum(positions[1], crossing))
    return positions[0], positions[1]


def _replace(array: Array, mask: Truth, values: Sequence[Number]) -> None:
  """Write values from the first element on, in the lanes where the mask holds."""
  array.fill([where(mask, new, old) for new, old in zip(values, array.read(), strict=True)])
