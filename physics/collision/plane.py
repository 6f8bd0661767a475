"""Contacts of planes with spheres, capsules, ellipsoids, cylinders and boxes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from physics.algebra.spatial import Vector, cross, dot, select
from physics.collision.geometry import ContactCandidate, Shape
from physics.trace.trace import Number, Program, absolute, maximum, negate, sqrt, where


@dataclass(frozen=True)
class Plane:
  """A plane and the margin [m] above it at which contact begins."""

  point: Vector
  normal: Vector
  margin: Number

  @staticmethod
  def of(shape: Shape, margin: Number) -> "Plane":
    """Return the plane of a shape."""
    return Plane(shape.position, shape.rotation.column(2), margin)

  def height(self, point: Vector) -> Number:
    """Return a point's distance [m] from the plane, negative below it."""
    return dot(self.normal, point - self.point)

  def candidate(self, point: Vector, radius: Number = 0.0, hint: Vector | None = None) -> ContactCandidate:
    """Return the contact of a sphere about a point."""
    distance = self.height(point) - radius

    def resolve() -> tuple[Number, Vector, Vector]:
      return distance, self.normal, point - self.normal * (radius + 0.5 * distance)

    return ContactCandidate(distance < self.margin, resolve, hint)

  def candidates(self, program: Program, points: Sequence[Vector]) -> Iterator[ContactCandidate]:
    """Yield the contacts of points, in a loop that has the code of one."""
    memory = program.array(3 * len(points))
    memory.fill([x for point in points for x in point])
    with program.loop(len(points)) as i:
      yield self.candidate(Vector(*memory.read(3 * i, 3)))


def plane_sphere(_program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contact of a plane and a sphere (MuJoCo's `mjc_PlaneSphere`)."""
  yield Plane.of(one, margin).candidate(two.position, two.size[0])


def plane_capsule(_program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contacts of a capsule's two ends; tangents follow its axis (MuJoCo's `mjc_PlaneCapsule`)."""
  plane, axis = Plane.of(one, margin), two.rotation.column(2)
  half = axis * two.size[1]
  for end in (two.position + half, two.position - half):
    yield plane.candidate(end, two.size[0], hint=axis)


def plane_ellipsoid(_program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contact of an ellipsoid's lowest point."""
  plane = Plane.of(one, margin)
  scaled = [x * size for x, size in zip(two.rotation.transposed @ plane.normal, two.size, strict=True)]
  height = sqrt(maximum(dot(scaled, scaled), 1e-30))  # of the centre above the lowest point
  lowest = Vector(*(-x * size / height for x, size in zip(scaled, two.size, strict=True)))
  yield plane.candidate(two.position + two.rotation @ lowest)


def plane_cylinder(program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contacts of a cylinder: the lowest points of both rims, and two more of the lower rim.

  Those two make a triangle with the lowest point, for a cylinder that stands. If it stands upright, the
  triangle begins at its x axis (MuJoCo's `mjc_PlaneCylinder`).
  """
  plane, rotation = Plane.of(one, margin), two.rotation
  x, y, z = rotation.transposed @ plane.normal
  axis = rotation.column(2) * where(z > 0.0, -two.size[1], two.size[1])
  square = x * x + y * y
  upright = square < 1e-30
  scale = two.size[0] / sqrt(maximum(square, 1e-30))
  out = rotation @ Vector(where(upright, two.size[0], -x * scale), where(upright, 0.0, -y * scale), 0.0)
  across = cross(out, rotation.column(2)) * math.sqrt(0.75)
  rim, inner = two.position + axis, out * -0.5
  yield from plane.candidates(
    program, (rim + out, two.position - axis + out, rim + inner + across, rim + inner - across)
  )


def plane_box(program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contacts of a box's four lower corners (MuJoCo's `mjc_PlaneBox`).

  They are the lowest corner and the other ends of its two edges that rise least. The fourth is diagonally
  opposite to the lowest, on the face of these edges, or at the end of the steepest edge, whichever is lower.
  """
  plane = Plane.of(one, margin)
  edges = [two.rotation.column(k) * (2.0 * two.size[k]) for k in range(3)]
  rises = [dot(plane.normal, edge) for edge in edges]
  edges = [edge * where(rise < 0.0, -1.0, 1.0) for edge, rise in zip(edges, rises, strict=True)]
  x, y, z = (absolute(rise) for rise in rises)
  x_is_steepest = (x > y) & (x > z)
  z_is_steepest = negate(x_is_steepest) & (z > y)
  first, second = select(x_is_steepest, edges[1], edges[0]), select(z_is_steepest, edges[1], edges[2])
  diagonal = edges[0] + edges[1] + edges[2]
  steepest = diagonal - first - second
  on_face = dot(plane.normal, first + second) < dot(plane.normal, steepest)
  lowest = two.position - diagonal * 0.5
  last = select(on_face, first + second, steepest)
  yield from plane.candidates(program, (lowest, lowest + first, lowest + second, lowest + last))
