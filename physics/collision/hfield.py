"""Contacts of height fields with convex shapes.

As in MuJoCo, a height field is two triangular prisms per cell of its grid, and a geom has one contact with
each prism that it touches. Spheres and capsules have formulas, which agree with MuJoCo to the precision of
its expanding polytope (1e-6 m), which puts points up to 1e-8 m beside the normal through the centre of a
sphere that is in the ground. Other shapes are searched, and agree too; but for boxes and meshes without any
margin that polytope stops too early, and MuJoCo's depths are wrong by centimetres.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from physics.algebra.spatial import AXES, Matrix, Vector, dot
from physics.collision.convex import core_of, touch_of
from physics.collision.geometry import CAPSULE, MESH, SPHERE, ContactCandidate, Lost, Shape
from physics.collision.prism import NEVER, Prism, Solid, meet
from physics.model.model import Model
from physics.trace.compact import LaneList, vector_fields
from physics.trace.trace import Number, Program, Truth, absolute, floor, maximum, minimum, where

# The most prisms that a geom may touch, at least: for a sphere smaller than a cell, the eight about a grid
# point; for limbs and trunk of a robot, enough to tumble over cells half as wide as its trunk.
MOST = {SPHERE: 8, CAPSULE: 16, MESH: 24}
CROWD = 512  # the most, however small the cells are; MuJoCo ends its search at 50
ROUND = 24  # near prisms that are listed at a time: a box around a mesh is near more than this touches


@dataclass(frozen=True)
class HeightField:
  """A grid of elevations over a rectangle, row after row along y."""

  rows: int
  columns: int
  half: tuple[float, float]  # half the rectangle's sides [m]
  base: float  # height of the flat underside [m]
  heights: tuple[float, ...]  # [rows * columns] [m]
  most: Mapping[int, int]  # prisms that a geom of a kind may be near

  @staticmethod
  def of(model: Model, geom: int) -> "HeightField":
    """Return the elevations of a geom."""
    index = int(model.geom_dataid[geom])
    rows, columns, start = (int(x[index]) for x in (model.hfield_nrow, model.hfield_ncol, model.hfield_adr))
    x, y, top, bottom = (float(size) for size in model.hfield_size[index])
    heights = np.asarray(model.hfield_data[start : start + rows * columns], float) * top
    most = {kind: most_prisms(model, geom, kind) for kind in MOST}
    return HeightField(rows, columns, (x, y), -bottom, tuple(heights.tolist()), most)

  @property
  def cells(self) -> tuple[int, int]:
    """Number of cells along x and y."""
    return self.columns - 1, self.rows - 1

  @property
  def spacing(self) -> tuple[float, float]:
    """Sides of a cell [m]."""
    return 2.0 * self.half[0] / (self.columns - 1), 2.0 * self.half[1] / (self.rows - 1)

  def height(self, program: Program, row: Number, column: Number) -> Number:
    """Return the elevation [m] at each lane's own grid point."""
    return program.table(self.heights, row * float(self.columns) + column)


def hfield_sphere(
  program: Program, one: Shape, two: Shape, margin: Number
) -> Iterator[ContactCandidate | Lost]:
  """Yield the contacts of a height field and a sphere."""
  yield from _candidates(program, one, Solid(two.position, (), two.size[0]), margin, one.asset.most[SPHERE])


def hfield_capsule(
  program: Program, one: Shape, two: Shape, margin: Number
) -> Iterator[ContactCandidate | Lost]:
  """Yield the contacts of a height field and a capsule."""
  axis = two.rotation.column(2) * two.size[1]
  yield from _candidates(
    program, one, Solid(two.position, (axis,), two.size[0]), margin, one.asset.most[CAPSULE]
  )


def hfield_convex(
  program: Program, one: Shape, two: Shape, margin: Number
) -> Iterator[ContactCandidate | Lost]:
  """Yield the contacts of a height field and any convex shape."""
  core, form = core_of(program, two), two.asset
  center = two.rotation @ form.center
  box = tuple(two.rotation.column(i) * form.half[i] for i in range(3))
  turned = one.rotation.transposed.times(two.rotation)

  def touch(prism: Prism, seen: Solid, side: Number) -> tuple[Number, Vector, Vector]:
    """Search in the prism's coordinates, in which the shape is mirrored."""
    columns = _mirrored(tuple(turned.column(i) for i in range(3)), side)
    rotation = Matrix(*columns).transposed
    position = seen.center - rotation @ form.center
    mirrored = replace(core, position=position, rotation=rotation)
    found = touch_of(PrismCore(program, prism), mirrored, margin, form, True)
    return where(found.near, found.distance, NEVER), found.normal, found.point

  solid = Solid(two.position + center, box, 0.0)
  yield from _candidates(program, one, solid, margin, one.asset.most[MESH], touch)


def most_prisms(model: Model, field: int, kind: int) -> int:
  """Return the most prisms of a height field that a geom of a kind may touch.

  A shape that is wider than a cell, or as long as several, lies on more of them than `MOST`.
  """
  kind = kind if kind in MOST else MESH
  most = MOST[kind]
  index = int(model.geom_dataid[field])
  points = (int(model.hfield_ncol[index]), int(model.hfield_nrow[index]))
  x, y = (2.0 * float(half) / (n - 1) for half, n in zip(model.hfield_size[index], points, strict=False))
  for geom in {pair.geom2 for pair in model.pairs if pair.geom1 == field}:
    if kind == {SPHERE: SPHERE, CAPSULE: CAPSULE}.get(int(model.geom_type[geom]), MESH):
      _, wide, long = sorted(2.0 * model.mj.geom_aabb[geom, 3:])
      for one, two in ((x, y), (y, x)):
        most = max(most, 2 * (int(long / one) + 2) * (int(wide / two) + 2))
  return min(most, CROWD)


Touching = Callable[[Prism, Solid, Number], tuple[Number, Vector, Vector]]


def _candidates(
  program: Program, one: Shape, solid: Solid, margin: Number, most: int, touch: Touching | None = None
) -> Iterator[ContactCandidate | Lost]:
  """Yield the contact with each prism that is met, one after the other in each lane.

  `touch` finds the contact of a prism and what is inside of the solid; None: the solid itself. Near prisms
  are listed some at a time, so that none is lost; of more contacts than `most`, the deepest stay.
  """
  field: HeightField = one.asset
  inverse = one.rotation.transposed
  axes = tuple(inverse @ axis for axis in solid.half_axes)
  local = Solid(inverse @ (solid.center - one.position), axes, solid.radius)
  near, met = LaneList(program, ROUND), LaneList(program, most, order="distance")
  listed, count = program.variable(0.0), program.variable(0.0)
  met.clear()

  def keep(found: Truth, values: Mapping[str, Number]) -> None:
    near.push(found & (count[0] >= listed[0]) & (count[0] < listed[0] + float(ROUND)), values)
    count[0] = count[0] + where(found, 1.0, 0.0)

  with program.loop(2 * math.prod(field.cells) // ROUND + 1):
    near.clear()
    count[0] = 0.0
    _each_near(program, field, local, margin, keep)
    with near.each() as entry:
      exists = absolute(entry["side"]) > 0.5  # zero in lanes without a prism in this slot
      side = where(exists, entry["side"], 1.0)
      prism = Prism(*field.spacing, field.base, (entry["corner"], entry["along_u"], entry["along_v"]))
      seen = Solid(Vector(entry["u"], entry["v"], local.center[2]), _mirrored(axes, side), solid.radius)
      distance, normal, point = touch(prism, seen, side) if touch else meet(program, prism, seen)
      # back from the prism's coordinates to the height field's, then to the world's
      away = Vector(point[0] - seen.center[0], point[1] - seen.center[1], point[2] - seen.center[2])
      normal, away = (one.rotation @ x for x in _mirrored((normal, away), side))
      vectors = vector_fields(normal=normal, point=solid.center + away)
      met.push(exists & (distance < margin), {"distance": distance} | vectors)
    listed[0] = listed[0] + float(ROUND)
    program.break_if_none(count[0] > listed[0])
  with met.each() as entry:
    normal, point = (Vector(*entry.vector(name)) for name in ("normal", "point"))  # zero in empty slots
    yield ContactCandidate(dot(normal, normal) > 0.0, partial(_known, entry["distance"], normal, point))
  yield Lost(met.dropped[0])


@dataclass(frozen=True)
class PrismCore:
  """A prism as the search for the closest points asks for it."""

  program: Program
  prism: Prism
  radius: Number = 0.0

  @property
  def position(self) -> Vector:
    """A point inside [m]."""
    return self.prism.center

  def support(self, direction: Vector, _lanes: Truth = True) -> tuple[Vector, Number]:
    """Return the corner that is farthest in a direction; the vertex number is always 0."""
    return self.prism.highest(direction)[0], 0.0


def _known(distance: Number, normal: Vector, point: Vector) -> tuple[Number, Vector, Vector]:
  return distance, normal, point


def _mirrored(vectors: tuple[Vector, ...], side: Number) -> tuple[Vector, ...]:
  """Turn vectors from the height field's axes to a prism's legs, or back."""
  return tuple(Vector(x * side, -y * side, z) for x, y, z in vectors)


def _each_near(
  program: Program, field: HeightField, solid: Solid, margin: Number, keep: Callable[..., None]
) -> None:
  """Offer to `keep` in each lane the prisms that may touch a solid.

  Fields: side, the heights corner, along_u, along_v, and u, v: the solid's centre in its coordinates.
  """
  dx, dy = field.spacing
  x, y, z = solid.center
  reach_x, reach_y, reach_z = (solid.extent(axis) + margin for axis in AXES)
  touches = (z - reach_z < max(field.heights)) & (z + reach_z > field.base)
  with program.when_any(touches):
    for row, column, under in _cells(program, field, solid, (reach_x, reach_y), touches):
      h00, h01, h10, h11 = (
        field.height(program, row + i, column + j) for i in (0.0, 1.0) for j in (0.0, 1.0)
      )
      inside = under & (z - reach_z < maximum(maximum(h00, h01), maximum(h10, h11)))
      with program.when_any(inside):
        # from the cell's first corner, found first: the sum of centre and half width would lose digits
        u, v = x - (column * dx - field.half[0]), y - (row * dy - field.half[1])
        for side, heights, uv in (
          (1.0, (h10, h11, h00), (u, dy - v)),
          (-1.0, (h01, h00, h11), (dx - u, v)),
        ):
          prism = Prism(dx, dy, field.base, heights)
          seen = Solid(Vector(*uv, z), _mirrored(solid.half_axes, side), solid.radius)
          found = inside & (prism.quick_distance(seen, margin) < margin)
          with program.when_any(found):
            values = dict(zip(("corner", "along_u", "along_v"), heights, strict=True))
            keep(found, {"side": side, "u": uv[0], "v": uv[1]} | values)


def _cells(
  program: Program, field: HeightField, solid: Solid, reach: tuple[Number, Number], near: Truth
) -> Iterator[tuple[Number, Number, Truth]]:
  """Loop over the cells under a solid: yield each lane's row and column, and which lanes have a cell."""
  (first_row, end_row), (first_column, end_column) = (
    (
      maximum(floor((at - r + half) * (1.0 / step)), 0.0),
      minimum((at + r + half) * (1.0 / step), float(count - 1)),
    )
    for at, r, half, step, count in (
      (solid.center[1], reach[1], field.half[1], field.spacing[1], field.rows),
      (solid.center[0], reach[0], field.half[0], field.spacing[0], field.columns),
    )
  )
  row, column = program.variable(first_row), program.variable(0.0)
  with program.loop(field.rows - 1):
    has_row = near & (row[0] < end_row)
    program.break_if_none(has_row)
    column[0] = first_column
    with program.loop(field.columns - 1):
      has_cell = has_row & (column[0] < end_column)
      program.break_if_none(has_cell)
      yield row[0], column[0], has_cell
      column[0] = column[0] + 1.0
    row[0] = row[0] + 1.0
