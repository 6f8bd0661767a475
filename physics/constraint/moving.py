"""Contacts between moving bodies: each lane packs its own contacts into its slots."""

from collections.abc import Sequence
from dataclasses import dataclass

from physics.algebra.spatial import Vector
from physics.collision.family import Shapes, candidates, families
from physics.collision.geometry import geom_shapes
from physics.collision.narrow import narrow_phase
from physics.constraint.gap import Gap
from physics.constraint.params import contact_params
from physics.constraint.surface import Surfaces, surface_motion
from physics.constraint.world import is_still
from physics.dynamics.kinematics import Poses
from physics.host import most_contacts, nearly_touching
from physics.model.model import Model
from physics.model.pairs import ContactPair
from physics.trace.column import Column
from physics.trace.compact import LaneList, vector_fields
from physics.trace.each import follow
from physics.trace.trace import Program

WORD_BITS = 31
NEARLY = 0.02  # of a geom's bounding radius: gap below which geoms nearly touch
POSES, SPARE = 64, 2.5  # random poses in which contacts are counted, and capacity over their most
USUAL, BOUND = 16, 256  # least and most of the estimated slots for contacts between moving bodies


@dataclass(frozen=True)
class MovingPairs:
  """The pairs of moving geoms, and the bodies that their contacts push."""

  pairs: tuple[ContactPair, ...]
  geoms: tuple[int, ...]  # all geoms in pairs
  bodies: tuple[int, ...]  # bodies with joints that some contact moves, by bit number
  owners: tuple[int, ...]  # bodies that own the geoms, by bit number
  friction: bool  # some pair has friction


def moving_pairs(model: Model) -> MovingPairs:
  """Return the pairs of moving geoms, their geoms and their bodies."""
  pairs = tuple(
    pair for pair in model.pairs if not is_still(model, pair.geom1) and not is_still(model, pair.geom2)
  )
  geoms = tuple(sorted({geom for pair in pairs for geom in (pair.geom1, pair.geom2)}))
  paths = [_path(model, a) ^ _path(model, b) for a, b in ((q.geom1, q.geom2) for q in pairs)]
  owners = tuple(sorted({int(model.geom_bodyid[geom]) for geom in geoms}))
  friction = any(pair.condim > 1 for pair in pairs)
  return MovingPairs(pairs, geoms, tuple(sorted(set().union(*paths))), owners, friction)


def moving_capacity(model: Model, moving: MovingPairs) -> int:
  """Return the number of contacts between moving bodies that an environment can hold.

  A geom counts with the most contacts that one of its pairs can have; the sum of these is the estimate: every
  geom touches two others at a time, and a contact has two geoms. Packed geoms, such as the pieces of Rubik's
  cube, touch more: all contacts of the initial pose, near ones included, have room. The estimate is at least
  `USUAL` and at most `BOUND`, which limits the memory of scenes with many free bodies. Arms that cross have
  more contacts too, above all if made of spheres: there is room for two and a half times the contacts of
  random poses, as rare poses have that many. The result is at most the contacts of all pairs together.
  """
  most = dict.fromkeys(moving.geoms, 0)
  for pair in moving.pairs:
    for geom in (pair.geom1, pair.geom2):
      most[geom] = max(most[geom], narrow_phase(model, pair).most)
  everything = sum(narrow_phase(model, pair).most for pair in moving.pairs)
  least = max(USUAL, sum(most.values()), _packed(model, moving))
  if least >= min(everything, BOUND):
    return min(everything, BOUND)
  return min(everything, max(least, _crossing(model, moving)))


def _packed(model: Model, moving: MovingPairs) -> int:
  """Return the most contacts of the pairs that touch in the initial pose, or nearly."""
  touching = nearly_touching(model, NEARLY)
  pairs = (pair for pair in moving.pairs if frozenset((pair.geom1, pair.geom2)) in touching)
  return sum(narrow_phase(model, pair).most for pair in pairs)


def _crossing(model: Model, moving: MovingPairs) -> int:
  """Return a capacity from the number of contacts in random poses."""
  pairs = {frozenset((pair.geom1, pair.geom2)) for pair in moving.pairs}
  return int(SPARE * most_contacts(model, pairs, POSES))


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

  Fields: geom1, geom2, point (relative to the origin of the first pair's tree) and normal (from geom1 to
  geom2), distance, the numbers of `contact_params`, surface and surface_spin of `Surfaces`, and words of
  bits: gains/loses (bodies that move with geom2's / geom1's side alone), owner2/owner1.
  """
  base = common_origin(model, p, moving)
  owners = [int(model.geom_bodyid[geom]) for geom in moving.geoms]
  of_geoms = geom_shapes(model, p, moving.geoms, lambda i: base - p.origin[follow(owners, i)])
  motions = {geom: surface_motion(model, geom, of_geoms[i]) for i, geom in enumerate(moving.geoms)}
  shapes = Shapes(program, moving.geoms, of_geoms)
  found = LaneList(program, capacity, order="distance")
  found.clear()
  for family in families(model, moving.pairs, by_lane=True):
    fields, gap = _fields(program, model, moving, family.pairs), Gap(program, model, family.pairs)
    surfaces = Surfaces(program, [motions[q.geom2] - motions[q.geom1] for q in family.pairs])
    sides = (shapes.side([q.geom1 for q in family.pairs]), shapes.side([q.geom2 for q in family.pairs]))
    for pair, candidate in candidates(program, model, family, sides, found.dropped):
      with program.when_any(candidate.active):
        distance, normal, point = candidate.resolve()
        values = {name: column[pair] for name, column in fields.items()} | {"distance": distance}
        # each lane has its own weight, zero in lanes with an empty slot
        values |= gap.fields(pair, candidate.active, values) | surfaces.fields(pair, point, normal)
        found.push(candidate.active, values | vector_fields(point=point, normal=normal))
  return found


def _fields(
  program: Program, model: Model, moving: MovingPairs, pairs: Sequence[ContactPair]
) -> dict[str, Column]:
  """Return by pair the fields known in advance: geoms, parameters, bits of pushed bodies and owners."""
  params = [contact_params(model, q) for q in pairs]
  fields = {name: Column(program, [each[name] for each in params]) for name in params[0]}
  fields["geom1"] = Column(program, [float(q.geom1) for q in pairs])
  fields["geom2"] = Column(program, [float(q.geom2) for q in pairs])
  sides = [(_path(model, q.geom1), _path(model, q.geom2)) for q in pairs]
  owners = [({int(model.geom_bodyid[q.geom1])}, {int(model.geom_bodyid[q.geom2])}) for q in pairs]
  for name, masks in (
    ("loses", [words(a - b, moving.bodies) for a, b in sides]),
    ("gains", [words(b - a, moving.bodies) for a, b in sides]),
    ("owner1", [words(a, moving.owners) for a, _ in owners]),
    ("owner2", [words(b, moving.owners) for _, b in owners]),
  ):
    for i, bits in enumerate(zip(*masks, strict=True)):
      fields[f"{name}{i}"] = Column(program, bits)
  return fields


def common_origin(model: Model, p: Poses, moving: MovingPairs) -> Vector:
  """Return the tree origin that points of moving contacts are relative to."""
  return p.origin[model.geom_bodyid[moving.geoms[0]]]
