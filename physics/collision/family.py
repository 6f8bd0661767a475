"""Families: geom pairs of one narrow phase, which runs in one loop over tables.

So the code does not grow with the number of pairs. Pairs are unrolled only if their narrow phase costs no
more than a bounding test.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from physics.algebra.spatial import Vector, dot
from physics.collision.geometry import HFIELD, PLANE, ContactCandidate, Lost, Shape, geom_bound
from physics.collision.narrow import Narrow, narrow_phase
from physics.model.model import Model
from physics.model.pairs import ContactPair
from physics.trace.column import Column
from physics.trace.compact import LaneList, LanePool
from physics.trace.rows import columns_of
from physics.trace.trace import Array, Index, Integer, Number, Program, Truth, maximum, number, where

GATHERED = 8  # pairs of two types from which on lanes share the near pairs that are searched
ROUND = 16  # near pairs that an environment collects before they are searched
TOUCH = 7  # numbers of a contact: distance, normal, point
NEVER = -1e10  # margin [m] at which nothing is near


@dataclass(frozen=True)
class Family:
  """A family: pairs of geoms and their narrow phase."""

  narrow: Narrow
  pairs: tuple[ContactPair, ...]
  gathered: bool = False  # lanes share all near pairs; else every lane visits the pairs near in any lane

  @property
  def geoms(self) -> tuple[list[int], list[int]]:
    """The first geoms and the second geoms of the pairs."""
    return [pair.geom1 for pair in self.pairs], [pair.geom2 for pair in self.pairs]


def families(model: Model, pairs: Sequence[ContactPair], by_lane: bool = False) -> list[Family]:
  """Sort pairs by narrow phase, and by assets that it does not read from tables.

  With `by_lane`, pairs of two types are gathered if they are many and their narrow phase is a search.
  """
  searched = [_types(model, pair) for pair in pairs if by_lane and narrow_phase(model, pair).meet]
  gathered = {types for types, count in Counter(searched).items() if count >= GATHERED}
  members: dict[Hashable, list[ContactPair]] = {}
  for pair in pairs:
    narrow, types = narrow_phase(model, pair), _types(model, pair)
    own = [geom for geom in (pair.geom1, pair.geom2) if not narrow.tables or model.geom_type[geom] == HFIELD]
    ids = (int(model.geom_dataid[geom]) for geom in own)
    members.setdefault((narrow.find, *ids, types if types in gathered else None), []).append(pair)
  return [
    Family(narrow_phase(model, group[0]), tuple(group), _types(model, group[0]) in gathered)
    for group in members.values()
  ]


def _types(model: Model, pair: ContactPair) -> tuple[int, int]:
  return int(model.geom_type[pair.geom1]), int(model.geom_type[pair.geom2])


class Shapes:
  """Shapes under keys, to be read inside loops over pairs."""

  def __init__(self, program: Program, keys: Iterable[Any], shapes: list[Shape]) -> None:
    self.keys, self.columns = list(keys), columns_of(program, shapes)

  def side(self, keys: Sequence[Any]) -> "Side":
    """Return the shapes that one side of a family's pairs has, by the pairs' keys."""
    return Side(self.columns, [self.keys.index(key) for key in keys])


@dataclass(frozen=True)
class Side:
  """The shapes of one side of a family's pairs."""

  columns: list[Column]
  order: list[int]

  def at(self, pair: Integer | Number, lane: Number | None = None) -> Shape:
    """Return the shape in a pair, the same for all lanes or each lane's own, without its asset.

    It is another lane's shape if each lane has the number of one.
    """
    return Shape.of([column.chosen(self.order, pair, lane) for column in self.columns])


def candidates(
  program: Program, model: Model, family: Family, sides: tuple[Side, Side], dropped: Array
) -> Iterator[tuple[Integer | Number, ContactCandidate]]:
  """Yield possible contacts of a family's pairs with the pair's number, inside the loop over the pairs.

  The number is each lane's own if the family is gathered. Contacts that a narrow phase loses are added to
  `dropped[0]`.
  """
  if family.gathered:
    yield from _Round(program, model, family, sides).candidates()
    return
  view = _View(program, model, family, sides)
  for i in _each(program, family, view.is_near):
    for found in family.narrow.find(program, *view.shapes(i), view.margins[i]):
      if isinstance(found, Lost):
        dropped[0] = dropped[0] + found.count
      else:
        yield i, found


class _View:
  """Shapes, margins and bounding tests of a family's pairs, for the narrow phase."""

  def __init__(self, program: Program, model: Model, family: Family, sides: tuple[Side, Side]) -> None:
    self.family, self.sides = family, sides
    self.forms = [family.narrow.assets(program, model, geoms) for geoms in family.geoms]
    self.margins = Column(program, [number(pair.reach) for pair in family.pairs])
    self.reaches = Column(program, [_reach(model, pair) for pair in family.pairs])
    self.above_plane = model.geom_type[family.pairs[0].geom1] == PLANE

  def shapes(self, i: Any, lane: Number | None = None) -> tuple[Shape, Shape]:
    """Return the shapes of a pair, of another lane if each has the number of one."""
    one, two = (
      replace(side.at(i, lane), asset=form(i)) for side, form in zip(self.sides, self.forms, strict=True)
    )
    return one, two

  def is_near(self, i: Integer) -> Truth:
    """Return whether the bounding spheres of a pair are near."""
    return _is_near(self.sides[0].at(i), self.sides[1].at(i), self.reaches[i], self.above_plane)

  def meet(self, i: Integer) -> Truth:
    """Return whether the closer bounds of a pair are near."""
    assert self.family.narrow.meet
    return self.family.narrow.meet(*self.shapes(i), self.margins[i])


class _Round:
  """The search of a few near pairs of every environment at a time, shared among lanes.

  A lane takes the next near pair of any environment, and stores contacts where that environment finds them in
  the order of its pairs. So no result depends on neighbours.
  """

  def __init__(self, program: Program, model: Model, family: Family, sides: tuple[Side, Side]) -> None:
    self.program, self.family = program, family
    self.view, self.most = _View(program, model, family, sides), family.narrow.most
    self.room = min(ROUND, len(family.pairs))
    self.near, self.pool = LaneList(program, self.room), LanePool(program, self.room)
    self.counts: Array = program.array(self.room)  # contacts of each near pair
    self.touches: Array = program.array(self.room * self.most * TOUCH)

  def candidates(self) -> Iterator[tuple[Number, ContactCandidate]]:
    """Yield each lane's contacts with the number of the pair."""
    program, count = self.program, len(self.family.pairs)
    due, rank = program.variable(0, Index), program.variable(0.0)
    self._clear(rank)
    with program.loop(count) as i:
      self._collect(i, rank)
      due[0] = 0
      with program.when_equal(self.near.size[0], self.room):
        due[0] = 1
      with program.when_equal(i, count - 1):
        due[0] = 1
      with program.when_equal(due[0], 1):
        self._search()
        yield from self._found()
        self._clear(rank)

  def _clear(self, rank: Array) -> None:
    self.near.clear()
    self.pool.clear()
    rank[0] = 0.0

  def _collect(self, i: Index, rank: Array) -> None:
    """List a pair in the lanes in which it is near."""
    program, near = self.program, self.view.is_near(i)
    with program.when_any(near):
      meets = near & self.view.meet(i)
      ordinal = program.table([1.0 + k for k in range(len(self.family.pairs))], i)
      self.near.push(meets, {"ordinal": ordinal})  # 0 in lanes that have fewer
      self.pool.push(meets, {"ordinal": ordinal, "rank": rank[0], "lane": program.lane})
      rank[0] = rank[0] + where(meets, 1.0, 0.0)

  def _search(self) -> None:
    """Find the contacts of all pairs that are listed."""
    program, slot = self.program, self.program.variable(0.0)
    with program.loop(self.near.size[0]) as place:
      self.counts[place] = 0.0
    with self.pool.each() as item:
      exists, pair = item["ordinal"] > 0.5, maximum(item["ordinal"] - 1.0, 0.0)
      rank, lane = item["rank"], item["lane"]
      margin = where(exists, self.view.margins.chosen(range(len(self.family.pairs)), pair, lane), NEVER)
      slot[0] = 0.0
      for found in self.family.narrow.find(program, *self.view.shapes(pair, lane), margin):
        assert isinstance(found, ContactCandidate)
        with program.when_any(found.active):
          distance, normal, point = found.resolve()
          start = (rank * float(self.most) + slot[0]) * float(TOUCH)
          for k, value in enumerate((distance, *normal, *point)):
            self.touches.put(start + float(k), value, found.active, lane)
          slot[0] = slot[0] + where(found.active, 1.0, 0.0)
      self.counts.put(rank, slot[0], exists, lane)

  def _found(self) -> Iterator[tuple[Number, ContactCandidate]]:
    program, numbers = self.program, [float(k) for k in range(self.most)]
    with self.near.each() as entry, program.loop(self.most) as place:
      active = program.table(numbers, place) < self.counts[entry.index]
      program.break_if_none(active)
      distance, *rest = self.touches.read((entry.index * self.most + place) * TOUCH, TOUCH)
      known = partial(_known, distance, Vector(*rest[:3]), Vector(*rest[3:]))
      yield maximum(entry["ordinal"] - 1.0, 0.0), ContactCandidate(active, known)


def _known(distance: Number, normal: Vector, point: Vector) -> tuple[Number, Vector, Vector]:
  return distance, normal, point


def _each(program: Program, family: Family, is_near: Callable[[Integer], Truth]) -> Iterator[Integer]:
  """Yield the pairs that are near in some lane."""
  count = len(family.pairs)
  with contextlib.ExitStack() as loop:
    unrolled = count == 1 or (family.narrow.cheap and not program.repeats)
    for i in range(count) if unrolled else [loop.enter_context(program.loop(count))]:
      with program.when_any(family.narrow.cheap or is_near(i)):
        yield i


def _reach(model: Model, pair: ContactPair) -> Number:
  """Return the distance [m] from the first geom's centre, or plane, to the second's where contact begins."""
  first = 0.0 if model.geom_type[pair.geom1] == PLANE else geom_bound(model, pair.geom1)
  return first + geom_bound(model, pair.geom2) + number(pair.reach)


def _is_near(one: Shape, two: Shape, reach: Number, above_plane: bool) -> Truth:
  separation = two.position - one.position
  if above_plane:
    return dot(one.rotation.column(2), separation) < reach
  return dot(separation, separation) < reach * reach
