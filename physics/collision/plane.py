"""Planes with everything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from physics.collision.geometry import Shape, Touch
from physics.spatial import Vector, dot
from physics.trace import Number, Program


@dataclass(frozen=True)
class Plane:
  """A plane and the margin [m] above it at which contact begins."""

  point: Vector
  normal: Vector
  margin: Number

  @staticmethod
  def of(shape: Shape, margin: Number) -> Plane:
    """Return what a plane's shape is."""
    return Plane(shape.position, shape.rotation.column(2), margin)

  def height(self, point: Vector) -> Number:
    """Return a point's distance [m] from the plane, negative below it."""
    return dot(self.normal, point - self.point)

  def touch(self, point: Vector, radius: Number = 0.0, hint: Vector | None = None) -> Touch:
    """Return the contact of a sphere about a point."""
    distance = self.height(point) - radius

    def resolve() -> tuple[Number, Vector, Vector]:
      return distance, self.normal, point - self.normal * (radius + 0.5 * distance)

    return Touch(distance < self.margin, resolve, hint)


def plane_sphere(_program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[Touch]:
  """Yield the contact of a plane and a sphere."""
  yield Plane.of(one, margin).touch(two.position, two.size[0])


def plane_capsule(_program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[Touch]:
  """Yield the contacts of a capsule's two ends; its axis leads their tangents."""
  plane, axis = Plane.of(one, margin), two.rotation.column(2)
  half = axis * two.size[1]
  for end in (two.position + half, two.position - half):
    yield plane.touch(end, two.size[0], hint=axis)
