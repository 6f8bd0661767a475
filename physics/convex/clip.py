"""Intersection of a convex polygon with a convex face, in all lanes at once.

Polygons lie in memory with a corner per place; each lane has its own number of corners.
"""

from collections.abc import Callable, Iterator
from functools import reduce

from physics.algebra.spatial import Vector, cross, dot, select
from physics.trace.trace import Integer, Number, Program, Truth, absolute, maximum, negate, where

FARTHEST = 1e10  # more than any score
LEAST = 1e-15  # distance [m] beyond an edge that still counts as inside, as in MuJoCo


class Polygon:
  """A polygon of each lane: `count` corners [m] in the first places."""

  def __init__(self, program: Program, capacity: int) -> None:
    self.program, self.capacity = program, capacity
    self.memory = [program.array(capacity) for _ in range(3)]
    self.size = program.variable(0.0)
    self.numbers = [float(i) for i in range(capacity)]

  @property
  def count(self) -> Number:
    """The number of corners of each lane."""
    return self.size[0]

  def clear(self) -> None:
    """Remove all corners."""
    self.size[0] = 0.0

  def push(self, corner: Vector, mask: Truth) -> None:
    """Append a corner where the mask holds and there is room."""
    fits = mask & (self.size[0] < float(self.capacity))
    for array, value in zip(self.memory, corner, strict=True):
      array.put(self.size[0], value, fits)
    self.size[0] = self.size[0] + where(fits, 1.0, 0.0)

  def append(self, place: Integer, corner: Vector, mask: Truth) -> None:
    """Set the corner in a place where the mask holds; there it is the next one in all lanes."""
    for array, value in zip(self.memory, corner, strict=True):
      array[place] = where(mask, value, array[place])
    self.size[0] = self.size[0] + where(mask, 1.0, 0.0)

  def at(self, place: Integer) -> Vector:
    """Return the corner in a place, the same for all lanes."""
    return Vector(*(array[place] for array in self.memory))

  def take(self, place: Number) -> Vector:
    """Return the corner in each lane's own place."""
    return Vector(*(array.take(place) for array in self.memory))

  def each(self, lanes: Truth) -> Iterator[tuple[Truth, Vector, Vector]]:
    """Loop over the sides: the lanes that have it, its first corner and its second."""
    with self.program.loop(self.capacity - 1) as place:
      number = self.program.table(self.numbers, place)
      exists = lanes & (number < self.count)
      self.program.break_if_none(exists)
      second = select(number + 1.0 < self.count, self.at(place + 1), self.at(0))
      yield exists, self.at(place), second

  def become(self, other: "Polygon", lanes: Truth) -> None:
    """Take over another polygon's corners in some lanes."""
    with self.program.loop(self.capacity) as place:
      self.program.break_if_none(lanes & (self.program.table(self.numbers, place) < other.count))
      for mine, its in zip(self.memory, other.memory, strict=True):
        mine[place] = where(lanes, its[place], mine[place])
    self.size[0] = where(lanes, other.count, self.count)


def clip(polygon: Polygon, start: Vector, inward: Vector, lanes: Truth) -> None:
  """Clip a polygon at a plane (Sutherland and Hodgman 1974), given by a point [m] and its inward normal."""
  program, outside = polygon.program, polygon.program.variable(0.0)
  for exists, corner, _ in polygon.each(lanes):
    outside[0] = where(exists & (dot(corner - start, inward) <= -LEAST), 1.0, outside[0])
  cut = lanes & (outside[0] > 0.5)
  with program.when_any(cut):
    kept = Polygon(program, polygon.capacity)
    kept.clear()
    for exists, one, two in polygon.each(cut):
      room_one, room_two = dot(one - start, inward), dot(two - start, inward)
      inside_one, inside_two = room_one > -LEAST, room_two > -LEAST
      leaves_or_enters = exists & negate(inside_one & inside_two) & (inside_one | inside_two)
      with program.when_any(leaves_or_enters):
        span = where(leaves_or_enters, room_one - room_two, 1.0)
        kept.push(one + (two - one) * (room_one / span), leaves_or_enters)
      kept.push(two, exists & inside_two)
    polygon.become(kept, cut)


def spread(polygon: Polygon, lanes: Truth, outward: Vector) -> list[Vector]:
  """Return four corners that are far apart, among them the lowest along a direction."""
  lowest = _best(polygon, lanes, lambda corner: -dot(corner, outward))
  across = _best(polygon, lanes, lambda corner: _square(corner - lowest))
  normal = cross(across - lowest, outward)
  aside = _best(polygon, lanes, lambda corner: absolute(dot(corner - lowest, normal)))
  ring = (lowest, across, aside)
  turn = where(dot(aside - lowest, normal) < 0.0, 1.0, -1.0)
  sides = [
    (start, cross(end - start, outward) * turn) for start, end in zip(ring, ring[1:] + ring[:1], strict=True)
  ]
  last = _best(polygon, lanes, lambda corner: reduce(maximum, [dot(corner - start, n) for start, n in sides]))
  return [*ring, last]


def _best(polygon: Polygon, lanes: Truth, score: Callable[[Vector], Number]) -> Vector:
  """Return the corner with the greatest score, the first of equal ones."""
  best = polygon.program.array(4)
  best.fill([0.0, 0.0, 0.0, -FARTHEST])
  for exists, corner, _ in polygon.each(lanes):
    here, before = score(corner), best.read()
    better = exists & (here > before[3])
    best.fill([where(better, x, y) for x, y in zip((*corner, here), before, strict=True)])
  return Vector(*best.read()[:3])


def _square(vector: Vector) -> Number:
  return dot(vector, vector)
