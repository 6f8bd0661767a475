"""Contacts of moving spheres and capsules with each other.

All pairs go through one loop over a table: a bounding-sphere test picks those that are near in any lane, one
block finds their contacts (a sphere is a capsule of length zero), each lane packs its own into its slots.
Code does not grow with pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from physics.collision.geometry import (
  CAPSULE,
  Segment,
  SegmentPair,
  Touch,
  geom_bound,
  geom_segment,
  inverse_square,
)
from physics.collision.world import is_still
from physics.compact import GroupList, LaneList
from physics.constraint import contact_law
from physics.kinematics import Poses
from physics.model import Model
from physics.pairs import ContactPair
from physics.spatial import Vector, dot
from physics.trace import Array, Index, Program, where

WORD_BITS = 31


@dataclass(frozen=True)
class MovingPairs:
  """The pairs of moving geoms and which bodies a contact of theirs pushes."""

  pairs: tuple[ContactPair, ...]
  geoms: tuple[int, ...]  # all geoms in pairs
  bodies: tuple[int, ...]  # bodies with joints that some contact moves, by bit number
  owners: tuple[int, ...]  # bodies that own the geoms, by bit number
  friction: bool  # some pair has friction


def moving_pairs(model: Model) -> MovingPairs:
  """Collect what the tables and bit masks of moving contacts are made from."""
  pairs = tuple(
    pair for pair in model.pairs if not is_still(model, pair.geom1) and not is_still(model, pair.geom2)
  )
  geoms = tuple(sorted({geom for pair in pairs for geom in (pair.geom1, pair.geom2)}))
  paths = [_path(model, a) ^ _path(model, b) for a, b in ((q.geom1, q.geom2) for q in pairs)]
  owners = tuple(sorted({int(model.geom_bodyid[geom]) for geom in geoms}))
  friction = any(pair.condim > 1 for pair in pairs)
  return MovingPairs(pairs, geoms, tuple(sorted(set().union(*paths))), owners, friction)


def _path(model: Model, geom: int) -> set[int]:
  """Return the bodies with joints between a geom and the world."""
  body, path = int(model.geom_bodyid[geom]), set()
  while body > 0:
    if model.body_dofnum[body]:
      path.add(body)
    body = int(model.body_parentid[body])
  return path


def words(numbers: set[int], order: tuple[int, ...]) -> list[int]:
  """Return a set as bits, `WORD_BITS` to the word."""
  bits = sum(1 << order.index(number) for number in numbers)
  count = -(-len(order) // WORD_BITS)
  return [bits >> (WORD_BITS * i) & ((1 << WORD_BITS) - 1) for i in range(count)]


def find_moving_contacts(
  program: Program, model: Model, p: Poses, moving: MovingPairs, capacity: int
) -> LaneList:
  """Return the contacts between moving bodies, `capacity` per environment; more are counted as dropped.

  Fields: point (relative to the origin of the first pair's tree) and normal (from geom1 to geom2), distance,
  the constants of `contact_law`, and words of bits: gains/loses (bodies that move with geom2's / geom1's side
  alone), owner2/owner1.
  """
  segments = _Segments(program, model, p, moving)
  near = _near_pairs(program, model, moving, segments)
  found = LaneList(program, capacity)
  found.clear()
  with near.each() as entry:
    table = _Tables(program, model, moving, entry["pair"])
    pair = SegmentPair(
      segments.at(table.geom1), segments.at(table.geom2), table.inverses, table.fields["margin"]
    )

    def push(touch: Touch) -> None:
      with program.when_any(touch.active):
        distance, normal, point = touch.resolve()
        values: dict[str, object] = {"distance": distance}
        for name, value in (("point", point), ("normal", normal)):
          values |= {f"{name}.{axis}": component for axis, component in zip("xyz", value, strict=True)}
        # a weight of its own for each lane: it is zero in lanes whose slot is empty
        weight = where(touch.active, table.fields["weight"], 0.0)
        found.push(touch.active, values | table.fields | {"weight": weight})

    nearest, parallel = pair.nearest(table.can_be_parallel)
    push(nearest)
    if parallel is not False:
      with program.when_any(parallel):
        for touch in pair.at_ends(parallel):
          push(touch)
  return found


class _Segments:
  """The segments of all geoms in group memory, relative to one common origin, to be read by index."""

  def __init__(self, program: Program, model: Model, p: Poses, moving: MovingPairs) -> None:
    self.memory: Array = program.array(7 * len(moving.geoms))
    base = common_origin(model, p, moving)
    for i, geom in enumerate(moving.geoms):
      segment = geom_segment(model, p, geom)
      center = segment.center + (p.origin[model.geom_bodyid[geom]] - base)
      for k, value in enumerate((*center, *segment.half_axis, segment.radius)):
        self.memory[7 * i + k] = value

  def at(self, index: Index | int) -> Segment:
    x = self.memory.read(index * 7, 7)
    return Segment(Vector(*x[0:3]), Vector(*x[3:6]), x[6])


def common_origin(model: Model, p: Poses, moving: MovingPairs) -> Vector:
  """Return the tree origin that points of moving contacts are relative to."""
  return p.origin[model.geom_bodyid[moving.geoms[0]]]


def _near_pairs(program: Program, model: Model, moving: MovingPairs, segments: _Segments) -> GroupList:
  near = GroupList(program, len(moving.pairs))
  reach = [geom_bound(model, q.geom1) + geom_bound(model, q.geom2) + q.margin for q in moving.pairs]
  with program.loop(len(moving.pairs)) as pair:
    one = segments.at(program.table([moving.geoms.index(q.geom1) for q in moving.pairs], pair))
    two = segments.at(program.table([moving.geoms.index(q.geom2) for q in moving.pairs], pair))
    separation = one.center - two.center
    with program.when_any(dot(separation, separation) < program.table([r * r for r in reach], pair)):
      near.push({"pair": pair})
  return near


class _Tables:
  """What is known of each pair in advance, read at a pair's index."""

  def __init__(self, program: Program, model: Model, moving: MovingPairs, pair: Index) -> None:
    pairs = moving.pairs
    self.geom1 = program.table([moving.geoms.index(q.geom1) for q in pairs], pair)
    self.geom2 = program.table([moving.geoms.index(q.geom2) for q in pairs], pair)
    is_capsule = {geom: model.geom_type[geom] == CAPSULE for geom in moving.geoms}
    self.can_be_parallel = any(is_capsule[q.geom1] and is_capsule[q.geom2] for q in pairs)
    self.inverses = (
      program.table([inverse_square(model, q.geom1) for q in pairs], pair),
      program.table([inverse_square(model, q.geom2) for q in pairs], pair),
    )
    laws = [contact_law(model, q) for q in pairs]
    self.fields = {name: program.table([law[name] for law in laws], pair) for name in laws[0]}
    sides = [(_path(model, q.geom1), _path(model, q.geom2)) for q in pairs]
    owners = [({int(model.geom_bodyid[q.geom1])}, {int(model.geom_bodyid[q.geom2])}) for q in pairs]
    self._bits(program, pair, "loses", [words(a - b, moving.bodies) for a, b in sides])
    self._bits(program, pair, "gains", [words(b - a, moving.bodies) for a, b in sides])
    self._bits(program, pair, "owner1", [words(a, moving.owners) for a, _ in owners])
    self._bits(program, pair, "owner2", [words(b, moving.owners) for _, b in owners])

  def _bits(self, program: Program, pair: Index, name: str, masks: list[list[int]]) -> None:
    for i in range(len(masks[0])):
      self.fields[f"{name}{i}"] = program.table([mask[i] for mask in masks], pair)
