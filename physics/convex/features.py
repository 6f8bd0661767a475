"""Faces and edges at the place where a shape touches another, as MuJoCo's contacts of faces need them.

A part of a shape is given by three of its vertices, equal ones counted once: a corner, an edge or a
face.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from physics.algebra.spatial import Vector, dot
from physics.convex.clip import Polygon
from physics.convex.core import BOX, CAPSULE, CYLINDER, FLAT, MESH, Core
from physics.trace.trace import Integer, Number, Scalar, Truth, absolute, maximum, sqrt, where

ALIGNED = 0.996  # cosine of the angle up to which two faces meet, as in MuJoCo
LEAST = 1e-15


@dataclass(frozen=True)
class Part:
  """The part of a shape that touches another: its vertices, and the direction outwards there."""

  core: Core
  vertices: Sequence[Number]  # [3]
  outward: Vector
  margin: Number  # distance [m] at which contact begins

  @property
  def dimension(self) -> Number:
    """The number of different vertices: 1, 2 or 3."""
    one, two, three = self.vertices
    second = where(same(one, two), 0.0, 1.0)
    third = where(same(one, three) | same(two, three), 0.0, 1.0)
    return 1.0 + second + third

  @property
  def grown(self) -> Number:
    """The distance [m] by which the line on a capsule that counts as its edge lies before its surface."""
    (grown,) = self.core.by_kind(1, lambda kind: [0.5 * self.margin if kind == CAPSULE else 0.0])
    return grown

  @property
  def second(self) -> Number:
    """The first vertex that differs from the first of all, if there is one."""
    one, two, three = self.vertices
    return where(same(one, two), three, two)


class Features:
  """A list of each lane: the faces at a part, or its edges; it has as many places as a vertex has corners."""

  def __init__(self, part: Part, width: int) -> None:
    self.part, self.program = part, part.core.program
    self.capacity = max(part.core.hulls.most_corners, 3)
    self.numbers = [float(i) for i in range(self.capacity)]
    self.memory = [self.program.array(self.capacity) for _ in range(width)]
    self.count = self.program.variable(0.0)  # places in use; some may not be valid

  def each(self, lanes: Truth) -> Iterator[tuple[Integer, Truth]]:
    """Loop over the places that some lane uses: the place, and the lanes that use it."""
    with self.program.loop(self.capacity) as place:
      exists = lanes & (self.program.table(self.numbers, place) < self.count[0])
      self.program.break_if_none(exists)
      yield place, exists

  def set(self, place: Integer, values: Sequence[Number]) -> None:
    """Write a place."""
    for array, value in zip(self.memory, values, strict=True):
      array[place] = value

  def corners(self) -> Iterator[tuple[Integer, Number, Truth]]:
    """Loop over the corners of the first vertex: place, number of the corner and lanes that have it."""
    core = self.part.core
    starts, first = core.hulls.corner_start, self.part.vertices[0]
    start, end = self.program.table(starts, first), self.program.table(starts, first + 1.0)
    self.count[0] = end - start
    for place, exists in self.each(True):
      yield place, start + self.program.table(self.numbers, place), exists


class Faces(Features):
  """The faces that a part lies on, each with its normal in the world; `valid` ones come in MuJoCo's order."""

  def __init__(self, part: Part) -> None:
    super().__init__(part, 5)  # face, normal, 1 if valid
    core = part.core
    for kind in sorted(set(core.kinds)):
      with self.program.when_equal(core.kind, kind):
        if kind in FLAT:
          self._of_hull(kind)
        elif kind == CYLINDER:
          self._of_cylinder()

  def at(self, place: Integer) -> tuple[Number, Vector, Truth]:
    """Return face, normal and whether it is valid."""
    face, x, y, z, valid = (array[place] for array in self.memory)
    return face, Vector(x, y, z), valid > 0.5

  def _of_cylinder(self) -> None:
    core, upper = self.part.core, self.part.vertices[0]
    normal = core.rotation.column(2) * (2.0 * upper - 1.0)
    base = core.hulls.first_cap
    self.set(0, (base + upper, *normal, where(self.part.dimension < 1.5, 1.0, 0.0)))
    self.count[0] = 1.0

  def _of_hull(self, kind: int) -> None:
    """List the faces that contain all vertices; for a box without any, the one that faces outwards."""
    program, hulls, part = self.program, self.part.core.hulls, self.part
    common = program.variable(0.0)
    local = part.core.rotation.transposed @ part.outward
    for place, corner, exists in self.corners():
      face = program.table(hulls.corner_face, corner)
      valid = exists & self._contains(face, part.vertices[1]) & self._contains(face, part.vertices[2])
      common[0] = common[0] + where(valid, 1.0, 0.0)
      self.set(place, (face, *(part.core.rotation @ hulls.normal(program, face)), where(valid, 1.0, 0.0)))
    if kind == BOX:
      dimension = part.dimension
      astray = (dimension > 1.5) & (common[0] < where(dimension > 2.5, 0.5, 1.5))
      with program.when_any(astray):
        for place, _ in self.each(astray):
          along = dot(hulls.normal(program, self.memory[0][place]), local)
          aligned = where(along > ALIGNED, 1.0, 0.0)
          self.memory[4][place] = where(astray, aligned, self.memory[4][place])

  def _contains(self, face: Number, vertex: Number) -> Truth:
    program, hulls = self.program, self.part.core.hulls
    starts, sides = hulls.ring_start, [float(i) for i in range(hulls.most_sides)]
    start, end = program.table(starts, face), program.table(starts, face + 1.0)
    found = program.variable(0.0)
    with program.loop(hulls.most_sides) as k:
      place = start + program.table(sides, k)
      program.break_if_none(place < end)
      here = (place < end) & same(program.table(hulls.ring, place), vertex)
      found[0] = where(here, 1.0, found[0])
    return found[0] > 0.5


class Edges(Features):
  """The edges of a part, or those at its vertex: they have one end in common."""

  def __init__(self, part: Part) -> None:
    super().__init__(part, 3)  # the other end
    core = part.core
    self.start = core.by_kind(3, self._start)
    for kind in sorted(set(core.kinds)):
      with self.program.when_equal(core.kind, kind):
        if kind in FLAT:
          self._of_hull()
        else:
          span = core.rotation.column(2) * (core.size[1] * (2.0 - 4.0 * part.vertices[0]))
          self.set(0, Vector(*self._start(kind)) + span)
          self.count[0] = 1.0

  def at(self, place: Integer) -> tuple[Vector, Vector]:
    """Return both ends [m]."""
    return Vector(*self.start), Vector(*(array[place] for array in self.memory))

  def touches(self) -> Truth:
    """Return whether the edges can touch: not the line on a cylinder's side where a cap touches.

    MuJoCo takes that line too, wherever it may be, and may find contacts on it that push sideways.
    """
    core, outward = self.part.core, self.part.outward
    (along,) = core.by_kind(
      1, lambda kind: [dot(outward, core.rotation.column(2)) if kind == CYLINDER else 0.0]
    )
    return absolute(along) < ALIGNED if isinstance(along, Scalar) else True

  def direction(self, place: Integer) -> Vector:
    """Return the unit vector along an edge."""
    start, end = self.at(place)
    span = end - start
    return span * (1.0 / sqrt(maximum(dot(span, span), LEAST * LEAST)))

  def _start(self, kind: int) -> Vector:
    """Return the common end: a vertex, or the end of the line on a round shape that touches."""
    core, part = self.part.core, self.part
    if kind in FLAT:
      return point_of(core, part.vertices[0])
    axis = core.rotation.column(2)
    end = core.position + axis * (core.size[1] * (2.0 * part.vertices[0] - 1.0))
    across = part.outward - axis * dot(axis, part.outward)
    if kind == CAPSULE:  # MuJoCo grows both shapes by half the margin first
      return end + across * (core.size[0] + 0.5 * part.margin)
    return end + across * (core.size[0] / sqrt(maximum(dot(across, across), LEAST * LEAST)))

  def _of_hull(self) -> None:
    core, program, part = self.part.core, self.program, self.part
    is_edge = part.dimension > 1.5
    for place, corner, _ in self.corners():
      vertex = program.table(core.hulls.corner_end, corner)
      self.set(place, point_of(core, where(is_edge, part.second, vertex)))
    self.count[0] = where(is_edge, 1.0, self.count[0])


def same(one: Number, two: Number) -> Truth:
  """Return whether two whole numbers are equal."""
  return absolute(one - two) < 0.5


def point_of(core: Core, vertex: Number) -> Vector:
  """Return a vertex of a hull [m] in the world."""
  stretch = core.by_kind(3, lambda kind: _stretch(core, kind))
  local = core.hulls.vertex(core.program, vertex)
  return core.rotation @ Vector(*(x * s for x, s in zip(local, stretch, strict=True))) + core.position


def _stretch(core: Core, kind: int) -> Sequence[Number]:
  if kind == CYLINDER:
    return [core.size[0], core.size[0], core.size[1]]
  return [1.0, 1.0, 1.0] if kind == MESH else core.size


def outline(core: Core, face: Number, polygon: Polygon, lanes: Truth) -> None:
  """Fill an empty polygon with the corners of a face [m], clockwise from outside."""
  program, hulls = core.program, core.hulls
  starts, sides = hulls.ring_start, [float(i) for i in range(hulls.most_sides)]
  first, end = program.table(starts, face), program.table(starts, face + 1.0)
  with program.loop(hulls.most_sides) as k:
    place = first + program.table(sides, k)
    exists = lanes & (place < end)
    program.break_if_none(exists)
    polygon.append(k, point_of(core, program.table(hulls.ring, place)), exists)
