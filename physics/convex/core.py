"""Cores of convex shapes: a shape is its core grown by a sphere (Minkowski sum).

A sphere's core is its centre and a capsule's is a segment; other shapes are their own core, of radius 0. The
distance of two shapes is their cores' distance less both radii, also where they overlap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from physics.algebra.spatial import MINVAL, Matrix, Vector, dot
from physics.convex.hull import Hulls
from physics.trace.farthest import CLUSTER
from physics.trace.trace import Integer, Number, Program, Truth, maximum, sqrt, where

SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(2, 8)  # mjtGeom
ROUND = (SPHERE, CAPSULE)  # kinds with a radius, which is size[0]
FLAT = (BOX, MESH)  # kinds with vertices
FARTHEST = -1e10  # below any coordinate [m]


class Convex(Protocol):
  """A convex shape for the searches: `support` describes its core, which the radius grows."""

  @property
  def program(self) -> Program:
    """The program that is traced."""

  @property
  def position(self) -> Vector:
    """A point inside [m]."""

  @property
  def radius(self) -> Number:
    """The radius [m] of the sphere that grows the shape."""

  def support(self, direction: Vector, lanes: Truth = True) -> tuple[Vector, Number]:
    """Return the farthest point [m] in a direction, and the number of its vertex, in some lanes."""


@dataclass(frozen=True)
class Core:
  """The core of a shape: centre [m], axes, sizes [m], and which kind of shape it may be.

  `kind` and `hull` may be indices that a loop over pairs of geoms reads from tables.
  """

  program: Program
  position: Vector
  rotation: Matrix  # shape to world: columns are the shape's axes
  size: tuple[Number, Number, Number]
  kind: Integer
  kinds: Sequence[int]  # all that `kind` can be
  hull: Integer | Number  # number of a mesh's hull, one for the group or one for each lane
  hulls: Hulls

  @property
  def radius(self) -> Number:
    """The radius [m] of the sphere that grows the core to the shape."""
    (radius,) = self.by_kind(1, lambda kind: [self.size[0] if kind in ROUND else 0.0])
    return radius

  def support(self, direction: Vector, lanes: Truth = True) -> tuple[Vector, Number]:
    """Return the farthest point [m] in a direction, and its vertex; in other lanes any point will do.

    That is a number among the vertices of all hulls; for capsules and cylinders 0 at the lower end and 1 at
    the upper one.
    """
    local = self.rotation.transposed @ direction
    x, y, z, vertex = self.by_kind(4, lambda kind: _SUPPORT[kind](self, local, lanes))
    return self.rotation @ Vector(x, y, z) + self.position, vertex

  def by_kind(self, count: int, compute: Callable[[int], Sequence[Number]]) -> Sequence[Number]:
    """Return the `count` numbers that a function of the kind computes for this core's kind."""
    if len(set(self.kinds)) == 1:
      return compute(self.kinds[0])
    results = self.program.array(count)
    for kind in sorted(set(self.kinds)):
      with self.program.when_equal(self.kind, kind):
        results.fill(compute(kind))
    return results.read()


def _point(_core: Core, _direction: Vector, _lanes: Truth) -> Sequence[Number]:
  return [0.0, 0.0, 0.0, 0.0]


def _segment(core: Core, direction: Vector, _lanes: Truth) -> Sequence[Number]:
  return [0.0, 0.0, _signed(core.size[1], direction[2]), _upper(direction[2])]


def _ellipsoid(core: Core, direction: Vector, _lanes: Truth) -> Sequence[Number]:
  scaled = [x * size for x, size in zip(direction, core.size, strict=True)]
  length = sqrt(maximum(dot(scaled, scaled), MINVAL * MINVAL))
  return [*(x * size / length for x, size in zip(scaled, core.size, strict=True)), 0.0]


def _cylinder(core: Core, direction: Vector, _lanes: Truth) -> Sequence[Number]:
  x, y, z = direction
  radius, half, _ = core.size
  square = x * x + y * y
  scale = where(square > MINVAL * MINVAL, radius / sqrt(maximum(square, MINVAL * MINVAL)), 0.0)
  return [x * scale, y * scale, _signed(half, z), _upper(z)]


def _box(core: Core, direction: Vector, _lanes: Truth) -> Sequence[Number]:
  vertex: Number = 0.0
  for bit, x in enumerate(direction):
    vertex = vertex + where(x < 0.0, 0.0, float(1 << bit))
  return [*(_signed(size, x) for size, x in zip(core.size, direction, strict=True)), vertex]


def _mesh(core: Core, direction: Vector, lanes: Truth) -> Sequence[Number]:
  program, hulls = core.program, core.hulls
  if isinstance(core.hull, int) and hulls.count(core.hull) <= CLUSTER:
    vertex = _among_few(core, core.hull, direction)
  else:
    vertex = program.farthest(hulls.clusters, core.hull, direction, lanes)
  return [*hulls.vertex(program, vertex), vertex]


def _among_few(core: Core, hull: int, direction: Vector) -> Number:
  """Return the farthest vertex of a hull with few, which all lanes visit together."""
  program, hulls = core.program, core.hulls
  best = program.array(2)  # vertex, how far
  best.fill([float(hulls.vertex_start[hull]), FARTHEST])
  with program.loop(hulls.vertex_start[hull + 1], hulls.vertex_start[hull]) as vertex:
    along, before = dot(hulls.vertex(program, vertex), direction), best.read()
    farther = along > before[1]
    best.fill([where(farther, program.table(hulls.numbers, vertex), before[0]), maximum(along, before[1])])
  return best[0]


def _upper(x: Number) -> Number:
  return where(x < 0.0, 0.0, 1.0)


def _signed(size: Number, x: Number) -> Number:
  return where(x < 0.0, -size, size)


_SUPPORT = {
  SPHERE: _point,
  CAPSULE: _segment,
  ELLIPSOID: _ellipsoid,
  CYLINDER: _cylinder,
  BOX: _box,
  MESH: _mesh,
}


def difference(
  a: Convex, b: Convex, direction: Vector, lanes: Truth = True
) -> tuple[Vector, Vector, Number, Number]:
  """Return in some lanes the farthest point of a - b in a direction, the point of a in it, both vertices."""
  (on_a, vertex_a), (on_b, vertex_b) = a.support(direction, lanes), b.support(-direction, lanes)
  return on_a - on_b, on_a, vertex_a, vertex_b
