"""Contacts of spheres with cylinders."""

from collections.abc import Iterator

from physics.algebra.spatial import MINVAL, Vector
from physics.collision.geometry import ContactCandidate, Shape
from physics.trace.trace import Number, Program, absolute, maximum, sqrt, where


def sphere_cylinder(_program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield the contact of a sphere with a cylinder (MuJoCo's `mjc_SphereCylinder`)."""
  radius, (size, half, _) = one.size[0], two.size
  local = two.rotation.transposed @ (one.position - two.position)
  level, direction = _approach(size, half, local)

  def resolve() -> tuple[Number, Vector, Vector]:
    normal, distance = two.rotation @ direction, level - radius
    return distance, normal, one.position + normal * (radius + 0.5 * distance)

  yield ContactCandidate(level - radius < margin, resolve)


def _approach(radius: Number, half: Number, point: Vector) -> tuple[Number, Vector]:
  """Return a point's distance [m] from a cylinder, negative inside, and the direction inwards there."""
  x, y, z = point
  across = sqrt(maximum(x * x + y * y, MINVAL * MINVAL))
  beside, above = across - radius, absolute(z) - half
  at_rim = (beside >= 0.0) & (above >= 0.0)
  slant = sqrt(maximum(beside * beside + above * above, MINVAL * MINVAL))
  by_side, by_cap = (
    where(at_rim, e / slant, where(beside < above, f, 1.0 - f)) for e, f in ((beside, 0.0), (above, 1.0))
  )
  x, y = (where(across > MINVAL, c / across, unit) for c, unit in ((x, -1.0), (y, 0.0)))
  direction = Vector(-x * by_side, -y * by_side, where(z > 0.0, -by_cap, by_cap))
  return where(at_rim, slant, maximum(beside, above)), direction
