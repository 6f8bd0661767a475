"""Families: geom pairs of one narrow phase, which runs in one loop over tables.

So the code does not grow with the number of pairs. Only pairs whose narrow phase costs no more than a
bounding test are unrolled.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from physics.algebra.spatial import dot
from physics.collision.geometry import HFIELD, MESH, PLANE, ContactCandidate, Lost, Shape, geom_bound
from physics.collision.narrow import Narrow, narrow_phase
from physics.model.model import Model
from physics.model.pairs import ContactPair
from physics.trace.column import Column
from physics.trace.compact import LaneList
from physics.trace.trace import Array, Integer, Number, Program, Truth, maximum, number, where

GATHERED = 8  # pairs of two types from which on lanes search near pairs of their own side by side
NEVER = -1e10  # margin [m] at which nothing is near


@dataclass(frozen=True)
class Family:
  """A family: pairs of geoms and their narrow phase."""

  narrow: Narrow
  pairs: tuple[ContactPair, ...]
  gathered: bool = False  # each lane goes through its own near pairs; else all through those near in any

  @property
  def geoms(self) -> tuple[list[int], list[int]]:
    """The first geoms and the second geoms of the pairs."""
    return [pair.geom1 for pair in self.pairs], [pair.geom2 for pair in self.pairs]


def families(model: Model, pairs: Sequence[ContactPair], by_lane: bool = False) -> list[Family]:
  """Sort pairs by narrow phase, and by assets that it does not read from tables.

  With `by_lane`, many pairs of two types whose contacts are searched are gathered.
  """
  searched = [_types(model, pair) for pair in pairs if by_lane and narrow_phase(model, pair).meet]
  gathered = {types for types, count in Counter(searched).items() if count >= GATHERED and MESH not in types}
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

  def __init__(self, program: Program, shapes: Mapping[Any, Shape]) -> None:
    self.keys = list(shapes)
    self.columns = [Column(program, x) for x in zip(*(s.numbers for s in shapes.values()), strict=True)]

  def side(self, keys: Sequence[Any]) -> Side:
    """Return the shapes that one side of a family's pairs has, by the pairs' keys."""
    return Side(self.columns, [self.keys.index(key) for key in keys])


@dataclass(frozen=True)
class Side:
  """The shapes of one side of a family's pairs."""

  columns: list[Column]
  order: list[int]

  def at(self, pair: Integer | Number) -> Shape:
    """Return the shape in a pair, the same for all lanes or each lane's own, without its asset."""
    return Shape.of([column.chosen(self.order, pair) for column in self.columns])


def candidates(
  program: Program, model: Model, family: Family, sides: tuple[Side, Side], dropped: Array
) -> Iterator[tuple[Integer | Number, ContactCandidate]]:
  """Yield possible contacts of a family's pairs with the pair's number, inside the loop over the pairs.

  The number is each lane's own if the family is gathered. Contacts that a narrow phase loses are added to
  `dropped[0]`.
  """
  pairs, find = family.pairs, family.narrow.find
  forms = [family.narrow.assets(program, model, geoms) for geoms in family.geoms]
  margins = Column(program, [number(pair.reach) for pair in pairs])
  reaches = Column(program, [_reach(model, pair) for pair in pairs])
  above_plane = model.geom_type[pairs[0].geom1] == PLANE

  def shapes(i: Any) -> tuple[Shape, Shape]:
    one, two = (replace(side.at(i), asset=form(i)) for side, form in zip(sides, forms, strict=True))
    return one, two

  def is_near(i: Integer) -> Truth:
    return _is_near(sides[0].at(i), sides[1].at(i), reaches[i], above_plane)

  def meet(i: Integer) -> Truth:
    return family.narrow.meet is None or family.narrow.meet(*shapes(i), margins[i])

  near = _gathered(program, len(pairs), is_near, meet) if family.gathered else _each(program, family, is_near)
  for i, lanes in near:
    for found in find(program, *shapes(i), where(lanes, margins[i], NEVER)):
      if isinstance(found, Lost):
        dropped[0] = dropped[0] + found.count
      else:
        yield i, found


def _each(
  program: Program, family: Family, is_near: Callable[[Integer], Truth]
) -> Iterator[tuple[Integer, Truth]]:
  """Yield the pairs that are near in some lane, for all lanes."""
  count = len(family.pairs)
  with contextlib.ExitStack() as loop:
    unrolled = family.narrow.cheap or count == 1
    for i in range(count) if unrolled else [loop.enter_context(program.loop(count))]:
      with program.when_any(family.narrow.cheap or is_near(i)):
        yield i, True


def _gathered(
  program: Program, count: int, is_near: Callable[[Integer], Truth], meet: Callable[[Integer], Truth]
) -> Iterator[tuple[Number, Truth]]:
  """Yield the first near pair of each lane, then the second and so on, and the lanes that have as many."""
  found, ordinals = LaneList(program, count), [1.0 + i for i in range(count)]  # 0 in lanes that have fewer
  found.clear()
  with program.loop(count) as i:
    near = is_near(i)
    with program.when_any(near):
      found.push(near & meet(i), {"ordinal": program.table(ordinals, i)})
  with found.each() as entry:
    yield maximum(entry["ordinal"] - 1.0, 0.0), entry["ordinal"] > 0.5


def _reach(model: Model, pair: ContactPair) -> Number:
  """Return the distance [m] from the first geom's centre, or plane, to the second's where contact begins."""
  first = 0.0 if model.geom_type[pair.geom1] == PLANE else geom_bound(model, pair.geom1)
  return first + geom_bound(model, pair.geom2) + number(pair.reach)


def _is_near(one: Shape, two: Shape, reach: Number, above_plane: bool) -> Truth:
  separation = two.position - one.position
  if above_plane:
    return dot(one.rotation.column(2), separation) < reach
  return dot(separation, separation) < reach * reach
