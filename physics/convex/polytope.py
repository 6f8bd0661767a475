"""How deep two cores overlap: an expanding polytope (van den Bergen 2001), in all lanes at once.

The polytope has corners on the surface of the difference a - b. Its face nearest to the origin moves out to
the farthest point along the face's normal, until no point is farther. Faces have signed distances, so the
polytope need not contain the origin at first.

The lanes share the numbers of corners, and each has its own faces. No face knows its neighbours. The rim of
the hole that a new corner makes is found from sums over the removed faces: of the corner after each corner
less the one before it, and of their squares. Inside the hole both sums vanish; on the rim they give the next
corner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from physics.algebra.spatial import AXES, Vector, cross, dot, select
from physics.convex.core import Convex, difference
from physics.trace.trace import (
  Index,
  Number,
  Program,
  Truth,
  absolute,
  floor,
  maximum,
  sqrt,
  where,
)

EXPANSIONS = 48  # the most corners that are added to the first four
TINY = 1e-14  # squared area [m^4] of a face that has no normal
NEVER = 1e10  # farther [m] than any face
CORNER = 8  # numbers of a corner: point, point of a, vertices of a and b
FACE = 7  # numbers of a face: normal, signed distance, corners


@dataclass(frozen=True)
class Overlap:
  """The shortest way out of an overlap."""

  depth: Number  # [m]
  normal: Vector  # from a to b
  on_a: Vector  # a's deepest point [m]
  vertices_a: list[Number]  # [3] vertices of the part of a that touches; equal ones count once
  vertices_b: list[Number]


def overlap(a: Convex, b: Convex, start: Vector, lanes: Truth, iterations: int, tolerance: float) -> Overlap:
  """Return how two cores overlap in some lanes; `start` [m] is a first guess of the direction from b to a."""
  polytope = _Polytope(a, b, min(iterations, EXPANSIONS))
  polytope.begin(start)
  polytope.expand(lanes, tolerance)
  return polytope.result()


class _Polytope:
  """The polytope of each lane: corners, faces, the sums at each corner, and the best normal so far."""

  def __init__(self, a: Convex, b: Convex, iterations: int) -> None:
    self.a, self.b, self.program, self.iterations = a, b, a.program, iterations
    self.capacity = 4 + iterations  # corners
    self.most_faces = 2 * self.capacity - 4
    array = self.program.array
    self.corners = [array(self.capacity) for _ in range(CORNER)]
    self.faces = [array(self.most_faces) for _ in range(FACE)]
    self.sums = [array(self.capacity) for _ in range(2)]
    self.freed = array(self.most_faces)  # places of removed faces
    self.count = self.program.variable(4.0)  # places in use, in each lane
    self.bound = self.program.array(1, Index, "n")  # the most places that a lane uses
    self.best = array(5 + 3)  # normal, depth, corners, 1 while the lane runs

  # -- the first four corners

  def begin(self, start: Vector) -> None:
    """Make a tetrahedron with volume."""
    length = sqrt(maximum(dot(start, start), TINY))
    first = start * (-1.0 / length)
    self._add(0, first)
    self._add(1, -first)
    along = self._corner(1) - self._corner(0)
    x, y, z = (absolute(value) for value in along)
    least = select((x <= y) & (x <= z), AXES[0], select(y <= z, AXES[1], AXES[2]))
    self._add_farther(2, cross(along, least))
    self._add_farther(3, cross(along, self._corner(2) - self._corner(0)))
    for array in self.sums:
      array.fill([0.0] * self.capacity)
    outside = dot(cross(along, self._corner(2) - self._corner(0)), self._corner(3) - self._corner(0)) > 0.0
    for place, ring in enumerate(((0, 1, 2), (0, 3, 1), (0, 2, 3), (1, 3, 2))):
      one, two, three = map(float, ring)
      numbers = (one, where(outside, three, two), where(outside, two, three))
      points = [self._corner(ring[0]), *self._swapped(outside, ring[1], ring[2])]
      for array, value in zip(self.faces, (*_plane(points), *numbers), strict=True):
        array[place] = value
    self.bound[0] = 4
    self.best.fill([*first, NEVER, 0.0, 1.0, 2.0, 1.0])

  def _swapped(self, mask: Truth, i: int, j: int) -> tuple[Vector, Vector]:
    one, two = self._corner(i), self._corner(j)
    return select(mask, two, one), select(mask, one, two)

  def _add(self, place: int | Index, direction: Vector) -> Vector:
    """Add the farthest point in a direction as a corner, and return it."""
    point, on_a, vertex_a, vertex_b = difference(self.a, self.b, direction)
    for array, value in zip(self.corners, (*point, *on_a, vertex_a, vertex_b), strict=True):
      array[place] = value
    return point

  def _add_farther(self, place: int, direction: Vector) -> None:
    """Add the farthest point in a direction or against it, whichever is farther from the first corner."""
    length = sqrt(maximum(dot(direction, direction), TINY))
    unit = direction * (1.0 / length)
    forth, back = difference(self.a, self.b, unit), difference(self.a, self.b, -unit)
    origin = dot(self._corner(0), unit)
    farther = dot(forth[0], unit) - origin >= origin - dot(back[0], unit)
    both = zip((*forth[0], *forth[1], *forth[2:]), (*back[0], *back[1], *back[2:]), strict=True)
    for array, (one, two) in zip(self.corners, both, strict=True):
      array[place] = where(farther, one, two)

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
      point = self._add(new, normal)
      depth = dot(point, normal)
      self._keep_best(running & (depth < self.best[3]), (*normal, depth, *ring))
      running = running & (depth - distance > tolerance)
      self.best[7] = where(running, 1.0, 0.0)
      with program.when_any(running):
        removed = self._remove_seen(point, running, 0.1 * tolerance)
        self._close_hole(new, point, running, removed)

  def _nearest_face(self) -> tuple[Vector, Number, list[Number]]:
    nearest = self.program.array(FACE)
    nearest.fill([0.0, 0.0, 1.0, NEVER, 0.0, 0.0, 0.0])
    with self.program.loop(self.bound[0]) as face:
      here, before = [array[face] for array in self.faces], nearest.read()
      nearer = here[3] < before[3]
      nearest.fill([where(nearer, new, old) for new, old in zip(here, before, strict=True)])
    values = nearest.read()
    return Vector(*values[:3]), values[3], values[4:]

  def _keep_best(self, mask: Truth, values: Sequence[Number]) -> None:
    for k, value in enumerate(values):
      self.best[k] = where(mask, value, self.best[k])

  def _remove_seen(self, point: Vector, running: Truth, slack: float) -> Number:
    """Remove the faces that a new corner lies beyond, add up their sums at corners; return their number."""
    program, number = self.program, [float(i) for i in range(self.most_faces)]
    removed = program.variable(0.0)
    with program.loop(self.bound[0]) as face:
      x, y, z, distance, *ring = (array[face] for array in self.faces)
      seen = running & (dot(point, Vector(x, y, z)) - distance > slack) & (distance < NEVER)
      with program.when_any(seen):
        self.faces[3][face] = where(seen, NEVER, distance)
        self.freed.put(removed[0], program.table(number, face), seen)
        removed[0] = removed[0] + where(seen, 1.0, 0.0)
        for k in range(3):
          corner, after, before = ring[k], ring[(k + 1) % 3], ring[(k + 2) % 3]
          terms = (after - before, after * after - before * before)
          for array, term in zip(self.sums, terms, strict=True):
            array.put(corner, array.take(corner) + term, seen)
    return removed[0]

  def _close_hole(self, new: Index, point: Vector, running: Truth, removed: Number) -> None:
    """Join the rim of the hole to the new corner; a lane whose hole has no simple rim ends."""
    program, number = self.program, [float(i) for i in range(self.capacity)]
    left, whole = program.variable(removed), program.variable(1.0)
    with program.loop(new) as corner:
      first, second = (array[corner] for array in self.sums)
      rim = running & (absolute(first) > 0.5)
      with program.when_any(rim):
        for array in self.sums:
          array[corner] = 0.0
        after = 0.5 * (first + second / where(rim, first, 1.0))
        next_corner = floor(after + 0.5)
        whole[0] = where(rim & (absolute(after - next_corner) > 0.01), 0.0, whole[0])
        other = Vector(*(array.take(next_corner) for array in self.corners[:3]))
        reuses = left[0] > 0.5
        place = where(reuses, self.freed.take(left[0] - 1.0), self.count[0])
        face = (*_plane([self._corner(corner), other, point]), program.table(number, corner), next_corner)
        fits = rim & (place < float(self.most_faces))
        for array, value in zip(self.faces, (*face, program.table(number, new)), strict=True):
          array.put(place, value, fits)
        left[0] = where(rim & reuses, left[0] - 1.0, left[0])
        self.count[0] = where(rim & ~reuses, self.count[0] + 1.0, self.count[0])
    # Euler's formula: a corner adds two faces to those that it removes
    sound = (left[0] < 0.5) & (absolute(self.count[0] - _faces_of(program, new)) < 0.5) & (whole[0] > 0.5)
    self.best[7] = where(sound, self.best[7], 0.0)
    self.bound[0] = (new + 1) * 2 - 4

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


def _faces_of(program: Program, new: Index) -> Number:
  """Return the number of faces of a polytope whose last corner is `new`."""
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
