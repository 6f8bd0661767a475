"""Families: geom pairs of one narrow phase, which runs in one loop over tables.

So the code does not grow with the number of pairs. Only pairs whose narrow phase costs no more than a
bounding test are unrolled.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from physics.algebra.spatial import dot
from physics.collision.geometry import HFIELD, PLANE, ContactCandidate, Lost, Shape, geom_bound
from physics.collision.narrow import Narrow, narrow_phase
from physics.model.model import Model
from physics.model.pairs import ContactPair
from physics.trace.column import Column
from physics.trace.trace import Array, Integer, Number, Program, Truth, number


@dataclass(frozen=True)
class Family:
  """A family: pairs of geoms and their narrow phase."""

  narrow: Narrow
  pairs: tuple[ContactPair, ...]

  @property
  def geoms(self) -> tuple[list[int], list[int]]:
    """The first geoms and the second geoms of the pairs."""
    return [pair.geom1 for pair in self.pairs], [pair.geom2 for pair in self.pairs]


def families(model: Model, pairs: Sequence[ContactPair]) -> list[Family]:
  """Sort pairs by narrow phase, and by assets that it does not read from tables."""
  members: dict[Hashable, list[ContactPair]] = {}
  for pair in pairs:
    narrow = narrow_phase(model, pair)
    own = [geom for geom in (pair.geom1, pair.geom2) if not narrow.tables or model.geom_type[geom] == HFIELD]
    ids = (int(model.geom_dataid[geom]) for geom in own)
    members.setdefault((narrow.find, *ids), []).append(pair)
  return [Family(narrow_phase(model, group[0]), tuple(group)) for group in members.values()]


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

  def at(self, pair: Integer) -> Shape:
    """Return the shape in a pair, without its asset."""
    return Shape.of([column.chosen(self.order, pair) for column in self.columns])


def candidates(
  program: Program, model: Model, family: Family, sides: tuple[Side, Side], dropped: Array
) -> Iterator[tuple[Integer, ContactCandidate]]:
  """Yield possible contacts of a family's pairs with the pair's number, inside the loop over the pairs.

  Contacts that a narrow phase loses are added to `dropped[0]`.
  """
  pairs, find = family.pairs, family.narrow.find
  forms = [family.narrow.assets(program, model, geoms) for geoms in family.geoms]
  margins = Column(program, [number(pair.reach) for pair in pairs])
  reaches = Column(program, [_reach(model, pair) for pair in pairs])
  above_plane = model.geom_type[pairs[0].geom1] == PLANE
  for i in _each(program, len(pairs), unrolled=family.narrow.cheap):
    near = family.narrow.cheap or _is_near(sides[0].at(i), sides[1].at(i), reaches[i], above_plane)
    with program.when_any(near):
      one, two = (replace(side.at(i), asset=form(i)) for side, form in zip(sides, forms, strict=True))
      for found in find(program, one, two, margins[i]):
        if isinstance(found, Lost):
          dropped[0] = dropped[0] + found.count
        else:
          yield i, found


def _each(program: Program, count: int, unrolled: bool) -> Iterator[Integer]:
  if unrolled or count == 1:
    yield from range(count)
  else:
    with program.loop(count) as i:
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
