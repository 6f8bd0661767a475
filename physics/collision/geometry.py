"""Shapes, possible contacts, and contact frames."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from physics.algebra.spatial import AXES, Matrix, Quaternion, Vector, cross, dot, select, vector
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.trace.each import Each, alike, entry, follow, places
from physics.trace.rows import rows
from physics.trace.trace import Number, Truth, absolute, maximum, number, sqrt, where

PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)  # mjtGeom


@dataclass(frozen=True)
class Shape:
  """A geom: centre [m], relative to a reference that both geoms of a pair share; axes; MuJoCo's sizes [m]."""

  position: Vector
  rotation: Matrix  # geom to world: columns are the geom's axes
  size: tuple[Number, Number, Number]
  asset: Any = None  # data beyond the sizes: the hull of a mesh, the elevations of a height field

  @property
  def components(self) -> tuple[Number, ...]:
    """The numbers [15] that `of` makes a shape of."""
    return (*self.position, *(x for row in self.rotation for x in row), *self.size)

  @staticmethod
  def of(values: Sequence[Number]) -> "Shape":
    """Make a shape of its numbers [15]."""
    rows = (Vector(*values[i : i + 3]) for i in (3, 6, 9))
    x, y, z = values[12:]
    return Shape(Vector(*values[:3]), Matrix(*rows), (x, y, z))


@dataclass(frozen=True)
class ContactCandidate:
  """A possible contact: the lanes that have it, and a function for its distance [m], normal and point."""

  active: Truth
  resolve: Callable[[], tuple[Number, Vector, Vector]]
  hint: Vector | None = None  # direction nearest to the first tangent; None: the default of the normal


@dataclass(frozen=True)
class Lost:
  """The number of possible contacts, per lane, for which a narrow phase had no room."""

  count: Number


def geom_shapes(
  model: Model, p: Poses, geoms: Sequence[int], origin: Callable[[Each], Vector]
) -> list[Shape]:
  """Return geoms relative to points: `origin` returns one for a place in the list."""
  shapes = rows(p.program, Shape, len(geoms))
  for _, run in groupby(range(len(geoms)), lambda i: int(model.geom_type[geoms[i]])):
    for i in places(p.program, list(run)):
      shapes[i] = geom_shape(model, p, follow(geoms, i), origin(i))
  return shapes


def geom_shape(model: Model, p: Poses, geom: Each, origin: Vector) -> Shape:
  """Return a geom relative to a point [m], itself given relative to the origin of the geom's tree."""
  body = follow(model.geom_bodyid, geom)
  position = p.relative(body, vector(entry(model.geom_pos, geom))) - origin
  local = Quaternion.constant(entry(model.geom_quat, geom)).matrix()
  rotation = p.rotation[body].times(Matrix(*(vector(row) for row in local)))
  x, y, z = (number(size) for size in entry(model.geom_size, geom))
  if alike(model.geom_type, geom) == SPHERE:
    y, z = 0.0, 0.0  # the file may give more sizes, which MuJoCo stores but does not use
  return Shape(position, rotation, (x, y, z))


def geom_bound(model: Model, geom: int) -> Number:
  """Return the radius [m] of a geom's bounding sphere; of a mesh or a height field, as MuJoCo compiled it."""
  x, y, z = (number(size) for size in model.geom_size[geom])
  kind = model.geom_type[geom]
  if kind == SPHERE:
    return x
  if kind == CAPSULE:
    return x + y
  if kind == CYLINDER:
    return sqrt(x * x + y * y)
  if kind == ELLIPSOID:
    return maximum(x, maximum(y, z))
  return sqrt(x * x + y * y + z * z) if kind == BOX else number(model.geom_rbound[geom])


def geom_box(model: Model, geom: int) -> tuple[Vector, Vector]:
  """Return a box about a geom, along its axes: centre [m], relative to the geom's, and half sides [m]."""
  x, y, z = (number(size) for size in model.geom_size[geom])
  kind = model.geom_type[geom]
  if kind == MESH:
    center, half = model.mj.geom_aabb[geom].reshape(2, 3)
    return vector(center), vector(half)
  halves = {SPHERE: (x, x, x), CAPSULE: (x, x, x + y), CYLINDER: (x, x, y)}
  return Vector(0.0, 0.0, 0.0), Vector(*halves.get(int(kind), (x, y, z)))


def tangents(normal: Vector, hint: Vector) -> tuple[Vector, Vector]:
  """Return two tangents of a unit normal, the first nearest to `hint`, or x (MuJoCo's `mju_makeFrame`)."""
  flat = hint - normal * dot(normal, hint)
  square = dot(flat, flat)
  vanishes = square < 1e-30
  scale = 1.0 / sqrt(where(vanishes, 1.0, square))
  first = select(vanishes, AXES[0], flat * scale)
  return first, cross(normal, first)


def default_hint(normal: Vector) -> Vector:
  """Return the direction MuJoCo starts a contact frame from: y, or z if the normal is near y."""
  return select(absolute(normal[1]) < 0.5, AXES[1], AXES[2])
