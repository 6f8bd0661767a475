"""Contacts of planes with convex meshes, whose hulls MuJoCo has compiled."""

from collections.abc import Iterator, Sequence

from physics.algebra.spatial import Vector, dot, select
from physics.collision.convex import Form, core_of
from physics.collision.geometry import ContactCandidate, Shape
from physics.collision.plane import Plane
from physics.convex.core import Core
from physics.convex.features import point_of
from physics.convex.hull import Hulls
from physics.trace.trace import Number, Program, Truth, absolute, minimum, where

QUAD = 4  # contacts that a face can have
FARTHEST = -1e10  # below any alignment
ABOVE = 1e3  # height [m] of corners that a face lacks
NEVER = -1e10  # margin [m] at which nothing touches

Point = tuple[float, float, float]


def plane_mesh(program: Program, one: Shape, two: Shape, margin: Number) -> Iterator[ContactCandidate]:
  """Yield up to four contacts of a face: of those at the lowest vertex, the one that faces the plane most.

  Vertices above the mesh's centre do not count.
  """
  plane, core = Plane.of(one, margin), core_of(program, two)
  limit = minimum(margin, plane.height(two.position))
  near = _bottom(plane, two) <= limit
  with program.when_any(near):  # one lane after the other looks for its lowest vertex
    lowest, vertex = core.support(-plane.normal, near)
    touches = near & (plane.height(lowest) < limit)
    with program.when_any(touches):
      corner = _facing(core, vertex, -plane.normal, touches)
      quads = _quads(core.hulls)
      numbers = [program.table(quads, corner * float(QUAD) + float(k)) for k in range(QUAD)]
      missing = lowest + plane.normal * ABOVE
      points = [select(number < 0.0, missing, point_of(core, number)) for number in numbers]
      yield from Plane.of(one, where(touches, limit, NEVER)).candidates(program, points)


def _bottom(plane: Plane, shape: Shape) -> Number:
  """Return the least height [m] of the box about a shape."""
  form: Form = shape.asset
  slopes = [absolute(x) for x in shape.rotation.transposed @ plane.normal]
  return plane.height(shape.position + shape.rotation @ form.center) - dot(slopes, form.half)


def _facing(core: Core, vertex: Number, direction: Vector, lanes: Truth) -> Number:
  """Return in some lanes the corner at a vertex whose face points most in a direction."""
  program, hulls = core.program, core.hulls
  local = core.rotation.transposed @ direction
  first, end = (program.table(hulls.corner_start, vertex + step) for step in (0.0, 1.0))
  best = program.array(2)  # corner, alignment
  best.fill([0.0, FARTHEST])
  with program.loop(hulls.most_corners) as k:
    corner = first + program.table([float(i) for i in range(hulls.most_corners)], k)
    exists = lanes & (corner < end)
    program.break_if_none(exists)
    along = dot(hulls.normal(program, program.table(hulls.corner_face, corner)), local)
    better = exists & (along > best[1])
    best.fill([where(better, new, old) for new, old in zip((corner, along), best.read(), strict=True)])
  return best[0]


def _quads(hulls: Hulls) -> tuple[float, ...]:
  """Return for each corner QUAD vertices of its face that span a wide quadrilateral, -1 for none."""
  vertices, quads = list(zip(*hulls.vertices, strict=True)), []
  for vertex in range(len(vertices)):
    for corner in range(int(hulls.corner_start[vertex]), int(hulls.corner_start[vertex + 1])):
      face = int(hulls.corner_face[corner])
      ring = hulls.ring[int(hulls.ring_start[face]) : int(hulls.ring_start[face + 1])][::-1]
      start = ring.index(float(vertex))
      ring = ring[start:] + ring[:start]
      chosen = _widest([vertices[int(number)] for number in ring])
      quads += [*(ring[k] for k in chosen), *[-1.0] * (QUAD - len(chosen))]
  return tuple(quads)


def _widest(ring: Sequence[Point]) -> list[int]:
  """Return up to four places on a convex polygon that, with the first, span a wide quadrilateral.

  As in MuJoCo, the last place advances while the area grows; after each advance the third does, then the
  second.
  """
  chosen = list(range(min(QUAD, len(ring))))

  def advance(k: int) -> bool:
    moved = [*chosen[:k], (chosen[k] + 1) % len(ring), *chosen[k + 1 :]]
    grows = _area(*(ring[place] for place in moved)) > _area(*(ring[place] for place in chosen))
    if grows:
      chosen[:] = moved
    return grows

  if len(ring) > QUAD:
    while advance(3):
      for k in (2, 1):
        while advance(k):
          pass
  return chosen


def _area(a: Point, b: Point, c: Point, d: Point) -> float:
  """Return the square of twice the area of a quadrilateral: of the cross product of its diagonals."""
  ux, uy, uz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
  vx, vy, vz = d[0] - b[0], d[1] - b[1], d[2] - b[2]
  x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
  return x * x + y * y + z * z
