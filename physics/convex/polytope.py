"""Penetration depth of two cores: an expanding polytope (van den Bergen 2001), in all lanes at once.

The polytope has corners on the surface of the difference a - b. Its face nearest to the origin moves out to
the farthest point along the face's normal, until no point is farther. At first it is the tetrahedron in which
the search for the closest points has found the origin, if there is one. Faces have signed distances, so the
polytope need not contain the origin.

The lanes share the numbers of corners and the places of faces, and each has its own faces: a place is in use
as long as some lane has a face there. No face knows its neighbours. The rim of the hole that a new corner
makes is found from sums over the removed faces: of the corner after each corner less the one before it, and
of their squares. Inside the hole both sums vanish; on the rim they give the next corner. One number carries
both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from physics.algebra.spatial import AXES, Vector, cross, dot, select
from physics.convex.closest import Closest
from physics.convex.core import Convex, difference
from physics.trace.trace import (
  Array,
  Index,
  Mask,
  Number,
  Program,
  Truth,
  absolute,
  floor,
  maximum,
  negate,
  sqrt,
  where,
)

EXPANSIONS = 64  # the most corners that are added to the first four
TINY = 1e-14  # squared area [m^4] of a face that has no normal
NEVER = 1e10  # farther [m] than any face
SPAN = 16384.0  # exceeds twice the square of any corner's number
CORNER = 8  # numbers of a corner: point, point of a, vertices of a and b
FACE = 7  # numbers of a face: normal, signed distance, corners


@dataclass(frozen=True)
class Overlap:
  """The direction and depth of least penetration."""

  depth: Number  # [m]
  normal: Vector  # from a to b
  on_a: Vector  # a's deepest point [m]
  vertices_a: list[Number]  # [3] vertices of the part of a that touches; equal ones count once
  vertices_b: list[Number]


def overlap(a: Convex, b: Convex, found: Closest, iterations: int, tolerance: float) -> Overlap:
  """Return how two cores overlap where the search for their closest points has found that they do."""
  polytope = _Polytope(a, b, min(iterations, EXPANSIONS))
  polytope.begin(found)
  polytope.expand(found.overlap, tolerance)
  return polytope.result()


class _Polytope:
  """The polytope of each lane: corners, faces, the hole of the last corner, and the best normal so far."""

  def __init__(self, a: Convex, b: Convex, iterations: int) -> None:
    self.a, self.b, self.program, self.iterations = a, b, a.program, iterations
    self.capacity = 4 + iterations  # corners
    self.most = 4 * self.capacity  # places: a lane has at most half as many faces
    self.numbers = [float(i) for i in range(self.most)]
    array, variable = self.program.array, self.program.variable
    self.corners = [array(self.capacity) for _ in range(CORNER)]
    self.faces = [array(self.most) for _ in range(FACE)]
    self.hole = [array(self.most) for _ in range(3)]  # corners of removed faces, -1 in lanes that keep them
    self.steps = [array(self.most) for _ in range(3)]  # from the corner before each of them to that after it
    self.places, self.removed = variable(4, Index), variable(0, Index)  # in use, of faces and of the hole
    self.count = variable(4.0)  # faces of each lane
    self.nearest = array(2)  # distance of the nearest face, its place
    self.best = array(5 + 3)  # normal, depth, corners, 1 while the lane runs

  # -- the first four corners

  def begin(self, found: Closest) -> None:
    """Take over the tetrahedron about the origin; elsewhere make one with volume."""
    length = sqrt(maximum(dot(found.separation, found.separation), TINY))
    first = found.separation * (-1.0 / length)
    for place, corner in enumerate(found.corners):
      self._put(place, corner)
    needed = found.overlap & negate(found.inside)
    with self.program.when_any(needed):
      self._make(first, needed)
    along = self._corner(1) - self._corner(0)
    outside = dot(cross(along, self._corner(2) - self._corner(0)), self._corner(3) - self._corner(0)) > 0.0
    self.nearest.fill([NEVER, 0.0])
    for place, ring in enumerate(((0, 1, 2), (0, 3, 1), (0, 2, 3), (1, 3, 2))):
      one, two, three = map(float, ring)
      numbers = (one, where(outside, three, two), where(outside, two, three))
      points = [self._corner(ring[0]), *self._swapped(outside, ring[1], ring[2])]
      *normal, distance = _plane(points)
      self._set_face(place, (*normal, distance, *numbers))
      self._offer(distance, float(place))
    self.best.fill([*first, NEVER, 0.0, 1.0, 2.0, 1.0])

  def _swapped(self, mask: Truth, i: int, j: int) -> tuple[Vector, Vector]:
    one, two = self._corner(i), self._corner(j)
    return select(mask, two, one), select(mask, one, two)

  def _make(self, first: Vector, lanes: Truth) -> None:
    """Make a tetrahedron with volume in some lanes, from the farthest points along a line."""
    self._put(0, _flat(difference(self.a, self.b, first)), lanes)
    self._put(1, _flat(difference(self.a, self.b, -first)), lanes)
    along = self._corner(1) - self._corner(0)
    x, y, z = (absolute(value) for value in along)
    least = select((x <= y) & (x <= z), AXES[0], select(y <= z, AXES[1], AXES[2]))
    self._put_farther(2, cross(along, least), lanes)
    self._put_farther(3, cross(along, self._corner(2) - self._corner(0)), lanes)

  def _put_farther(self, place: int, direction: Vector, lanes: Truth) -> None:
    """Put the farthest point in a direction or against it, whichever is farther from the first corner."""
    length = sqrt(maximum(dot(direction, direction), TINY))
    unit = direction * (1.0 / length)
    forth, back = difference(self.a, self.b, unit), difference(self.a, self.b, -unit)
    origin = dot(self._corner(0), unit)
    farther = dot(forth[0], unit) - origin >= origin - dot(back[0], unit)
    both = zip(_flat(forth), _flat(back), strict=True)
    self._put(place, [where(farther, one, two) for one, two in both], lanes)

  def _put(self, place: int | Index, corner: Sequence[Number], lanes: Truth = True) -> None:
    """Set the numbers of a corner in some lanes."""
    for array, value in zip(self.corners, corner, strict=True):
      array[place] = value if lanes is True else where(lanes, value, array[place])

  def _corner(self, place: int | Index) -> Vector:
    return Vector(*(array[place] for array in self.corners[:3]))

  # -- expansion

  def expand(self, lanes: Truth, tolerance: float) -> None:
    """Add corners until no point is farther than the nearest face by more than a tolerance [m]."""
    program = self.program
    self.best[7] = where(lanes, 1.0, 0.0)
    with program.loop(self.iterations) as step:
      running = self.best[7] > 0.5
      program.break_if_none(running)
      new = step + 4
      normal, distance, ring = self._nearest_face()
      corner = difference(self.a, self.b, normal, running)
      point = corner[0]
      self._put(new, _flat(corner))
      depth = dot(point, normal)
      less, ends = running & (depth < self.best[3]), running & (depth - distance <= tolerance)
      self._keep(0, less, (*normal, depth))
      self._keep(4, less | ends, ring)  # a face within may have the same normal, but not the nearest point
      running = running & ~ends
      self.best[7] = where(running, 1.0, 0.0)
      with program.when_any(running):
        self._remove_seen(point, running, 0.1 * tolerance)
        with program.when_less(self.most, self.places[0] + new):
          self._pack(new)
        self._close_hole(new, point, running)

  def _nearest_face(self) -> tuple[Vector, Number, list[Number]]:
    values = [array.take(self.nearest[1]) for array in self.faces]
    return Vector(*values[:3]), values[3], values[4:]

  def _offer(self, distance: Number, place: Number) -> None:
    """Note a face as the nearest where it is nearer than those before."""
    nearest, before = distance < self.nearest[0], self.nearest.read()
    self.nearest.fill([where(nearest, x, y) for x, y in zip((distance, place), before, strict=True)])

  def _set_face(self, place: int | Index, values: Sequence[Number]) -> None:
    for array, value in zip(self.faces, values, strict=True):
      array[place] = value

  def _keep(self, start: int, mask: Truth, values: Sequence[Number]) -> None:
    for k, value in enumerate(values, start):
      self.best[k] = where(mask, value, self.best[k])

  def _remove_seen(self, point: Vector, running: Mask, slack: float) -> None:
    """Move the faces that a new corner lies beyond to the hole, and close up the places of the others."""
    program, kept = self.program, self.program.variable(0, Index)
    self.removed[0] = 0
    self.nearest.fill([NEVER, 0.0])
    with program.loop(self.places[0]) as place:
      x, y, z, distance, *ring = (array[place] for array in self.faces)
      seen = running & (dot(point, Vector(x, y, z)) - distance > slack) & (distance < NEVER)
      with program.when_any(seen):
        self._remove(ring, seen)
      left = where(seen | ~running, NEVER, distance)
      with program.when_any(left < NEVER):
        self._set_face(kept[0], (x, y, z, left, *ring))
        self._offer(left, program.table(self.numbers, kept[0]))
        kept[0] = kept[0] + 1
    self.places[0] = kept[0]

  def _remove(self, ring: Sequence[Number], lanes: Mask) -> None:
    """Add a face to the hole of some lanes."""
    place, marks = self.removed[0], [corner * SPAN + corner * corner for corner in ring]
    for k, corner in enumerate(ring):
      self.hole[k][place] = where(lanes, corner, -1.0)
      self.steps[k][place] = marks[(k + 1) % 3] - marks[(k + 2) % 3]
    self.removed[0] = place + 1
    self.count[0] = self.count[0] - where(lanes, 1.0, 0.0)

  def _pack(self, new: Index) -> None:
    """Move the faces of each lane to its first places, to make room for the faces of a new corner."""
    program, own = self.program, self.program.variable(0.0)
    self.nearest.fill([NEVER, 0.0])
    with program.loop(self.places[0]) as place:
      values = [array[place] for array in self.faces]
      exists = values[3] < NEVER
      for array, value in zip(self.faces, values, strict=True):
        array.put(own[0], value, exists)
      self._offer(values[3], own[0])
      own[0] = own[0] + where(exists, 1.0, 0.0)
    with program.loop(self.places[0]) as place:
      rest = own[0] <= program.table(self.numbers, place)
      self.faces[3][place] = where(rest, NEVER, self.faces[3][place])
    self.places[0] = new * 2 - 4  # the faces of a polytope with as many corners

  def _close_hole(self, new: Index, point: Vector, running: Truth) -> None:
    """Join the rim of the hole to the new corner; a lane ends if its hole has no simple rim."""
    program, whole, step = self.program, self.program.variable(1.0), self.program.variable(0.0)
    with program.loop(new) as corner:
      number = program.table(self.numbers, corner)
      self._sum_around(corner, step)
      first = floor(step[0] * (1.0 / SPAN) + 0.5)
      rim = running & (absolute(first) > 0.5)
      with program.when_any(rim):
        after = 0.5 * (first + (step[0] - first * SPAN) / where(rim, first, 1.0))
        next_corner = floor(after + 0.5)
        whole[0] = where(rim & (absolute(after - next_corner) > 0.01), 0.0, whole[0])
        other = Vector(*(array.take(next_corner) for array in self.corners[:3]))
        *normal, distance = _plane([self._corner(corner), other, point])
        distance = where(rim, distance, NEVER)
        place = self.places[0]
        self._set_face(place, (*normal, distance, number, next_corner, program.table(self.numbers, new)))
        self._offer(distance, program.table(self.numbers, place))
        self.places[0] = place + 1
        self.count[0] = self.count[0] + where(rim, 1.0, 0.0)
    # Euler's formula: a corner adds two faces to those that it removes
    sound = (absolute(self.count[0] - _faces_of(program, new)) < 0.5) & (whole[0] > 0.5)
    self.best[7] = where(sound, self.best[7], 0.0)

  def _sum_around(self, corner: Index, step: Array) -> None:
    """Sum the steps around a corner over the removed faces."""
    step[0] = 0.0
    with self.program.loop(self.removed[0]) as place:
      for hole, steps in zip(self.hole, self.steps, strict=True):
        step[0] = step[0] + where(self.program.same(hole[place], corner), steps[place], 0.0)

  # -- the result

  def result(self) -> Overlap:
    """Return the normal with the least depth, and where the nearest point of its face comes from."""
    x, y, z, depth, *ring, _ = self.best.read()
    normal = Vector(x, y, z)
    corners = [[array.take(number) for array in self.corners] for number in ring]
    points = [Vector(*corner[:3]) for corner in corners]
    weights = _weights(points, normal * depth)
    on_a = Vector(0.0, 0.0, 0.0)
    for corner, weight in zip(corners, weights, strict=True):
      on_a = on_a + Vector(*corner[3:6]) * weight
    vertices_a, vertices_b = ([corner[field] for corner in corners] for field in (6, 7))
    return Overlap(depth, normal, on_a, vertices_a, vertices_b)


def _flat(corner: tuple[Vector, Vector, Number, Number]) -> list[Number]:
  """Return the numbers of a corner: point, point of a, vertices of a and b."""
  point, on_a, *vertices = corner
  return [*point, *on_a, *vertices]


def _faces_of(program: Program, new: Index) -> Number:
  """Return the number of faces of a polytope with `new` as its last corner."""
  return program.table([2.0 * (corner + 1) - 4.0 for corner in range(4 + EXPANSIONS)], new)


def _plane(points: Sequence[Vector]) -> tuple[Number, Number, Number, Number]:
  """Return the outward unit normal and the signed distance [m] of a face; `NEVER` if it has no area."""
  one, two, three = points
  normal = cross(two - one, three - one)
  square = dot(normal, normal)
  flat = square < TINY * TINY
  unit = normal * (1.0 / sqrt(where(flat, 1.0, square)))
  return *unit, where(flat, 0.5 * NEVER, dot(unit, one))


def _weights(points: Sequence[Vector], foot: Vector) -> list[Number]:
  """Return the weights of a triangle's corners for a point of its plane.

  The point may lie outside: the face of the difference that it lies on may consist of several triangles.
  """
  one, two, three = points
  normal = cross(two - one, three - one)
  areas = [dot(cross(points[i] - foot, points[j] - foot), normal) for i, j in ((1, 2), (2, 0), (0, 1))]
  total = dot(normal, normal)
  flat = total < TINY * TINY
  scale = 1.0 / where(flat, 1.0, total)
  return [where(flat, 1.0 / 3.0, area * scale) for area in areas]
