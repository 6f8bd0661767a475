"""Contacts of moving bodies with geoms that stand still.

If any lane is near, a candidate gets an entry in the list of the group, which has room for all candidates. On
height fields of very small cells they are more than a GPU has memory for: each lane has its share.
"""

from collections.abc import Callable
from typing import Any

from physics.algebra.spatial import ZERO
from physics.collision.family import Family, Shapes, candidates, families
from physics.collision.geometry import HFIELD, ContactCandidate, Shape, default_hint, geom_shape, geom_shapes
from physics.collision.narrow import narrow_phase
from physics.constraint.gap import Gap
from physics.constraint.params import contact_params
from physics.constraint.surface import Surfaces, surface_motion
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.model.pairs import ContactPair
from physics.trace.column import Column
from physics.trace.compact import GroupList, vector_fields
from physics.trace.each import follow
from physics.trace.trace import Integer, Program

ON_FIELDS = 768  # contacts of an environment with height fields: a humanoid on cells of 2 cm has 550
Keyed = tuple[list[Any], list[Shape]]  # shapes, and their keys


def is_still(model: Model, geom: int) -> bool:
  """Return whether no joint moves a geom; a mocap body counts as still."""
  return bool(model.body_treeid[model.geom_bodyid[geom]] < 0)


def world_pairs(model: Model) -> list[ContactPair]:
  """Return the pairs with one geom that stands still."""
  return [pair for pair in model.pairs if is_still(model, pair.geom1) or is_still(model, pair.geom2)]


def pushed_bodies(model: Model) -> list[int]:
  """Return the bodies that contacts with the world push: of bodies welded together, only the first."""
  movers = {_roles(model, pair)[1] for pair in world_pairs(model)}
  return sorted({int(model.body_weldid[model.geom_bodyid[geom]]) for geom in movers})


def find_world_contacts(program: Program, model: Model, p: Poses, bodies: list[int]) -> GroupList:
  """Return the contacts with the world; `bodies` are the welded bodies that an entry's `body` indexes.

  Fields: body, geom_body, still_body, geom1, geom2, point (relative to the tree origin) and normal (towards
  the moving geom), hint, distance, the numbers of `contact_params`, the weight zero in lanes where the
  contact does not act, surface and surface_spin of `Surfaces`, and for adhesion found, zero in lanes without
  this contact.
  """
  pairs = world_pairs(model)
  rooms = [(model.geom_type[pair.geom1] == HFIELD, narrow_phase(model, pair).most) for pair in pairs]
  others = sum(most for is_field, most in rooms if not is_field)
  found = GroupList(program, sum(most for _, most in rooms), others + ON_FIELDS)
  search = _Search(program, model, p, bodies, found)
  for still_first in (True, False):
    for family in families(model, [q for q in pairs if is_still(model, q.geom1) == still_first]):
      search.run(family, still_first)
  return found


class _Search:
  """The search for contacts: it runs families of pairs and pushes their contacts."""

  def __init__(self, program: Program, model: Model, p: Poses, bodies: list[int], found: GroupList) -> None:
    self.program, self.model, self.bodies, self.found = program, model, bodies, found
    still, moving = _alone(model, p) if p.program is None else _in_loops(model, p)
    self.still, self.moving = Shapes(program, *still), Shapes(program, *moving)
    self.still_motions = {key: surface_motion(model, key[0], still[1][i]) for i, key in enumerate(still[0])}
    self.moving_motions = {key: surface_motion(model, key, moving[1][i]) for i, key in enumerate(moving[0])}

  def run(self, family: Family, still_first: bool) -> None:
    model, roles = self.model, [_roles(self.model, pair) for pair in family.pairs]
    owners = [int(model.geom_bodyid[mover]) for _, mover in roles]
    stills = [(fixed, int(model.body_treeid[o])) for (fixed, _), o in zip(roles, owners, strict=True)]
    movers = [mover for _, mover in roles]
    motions = [self.moving_motions[a] - self.still_motions[b] for a, b in zip(movers, stills, strict=True)]
    surfaces = Surfaces(self.program, motions)
    push = self._pusher(family, owners, surfaces, 1.0 if still_first else -1.0)
    still, moving = self.still.side(stills), self.moving.side(movers)
    sides = (still, moving) if still_first else (moving, still)
    for pair, candidate in candidates(self.program, model, family, sides, self.found.dropped):
      push(pair, candidate)  # type: ignore[arg-type] # no family here is gathered

  def _pusher(
    self, family: Family, owners: list[int], surfaces: Surfaces, sign: float
  ) -> Callable[[Integer, ContactCandidate], None]:
    program, params = self.program, [contact_params(self.model, pair) for pair in family.pairs]
    gap = Gap(program, self.model, family.pairs)
    columns = {name: Column(program, [each[name] for each in params]) for name in params[0]}
    columns["body"] = Column(program, [self.bodies.index(int(self.model.body_weldid[o])) for o in owners])
    columns["geom_body"] = Column(program, owners)
    stills = [_roles(self.model, pair)[0] for pair in family.pairs]
    columns["still_body"] = Column(program, [int(self.model.geom_bodyid[geom]) for geom in stills])
    columns["geom1"] = Column(program, [pair.geom1 for pair in family.pairs])
    columns["geom2"] = Column(program, [pair.geom2 for pair in family.pairs])

    def push(pair: Integer, candidate: ContactCandidate) -> None:
      active = self.found.admit(candidate.active)
      with program.when_any(active):
        distance, normal, point = candidate.resolve()
        normal = normal * sign
        entry = {name: column[pair] for name, column in columns.items()} | {"distance": distance}
        entry |= gap.fields(pair, active, entry) | surfaces.fields(pair, point, normal)
        hint = candidate.hint or default_hint(normal)
        self.found.push(entry | vector_fields(point=point, normal=normal, hint=hint))

    return push


def _alone(model: Model, p: Poses) -> tuple[Keyed, Keyed]:
  """Return the shapes that stand still and those that move, in the order of the pairs.

  A still shape exists once for each tree that its geom can touch, relative to the tree's origin.
  """
  still, moving = {}, {}
  for pair in world_pairs(model):
    fixed, mover = _roles(model, pair)
    body = int(model.geom_bodyid[mover])
    tree = int(model.body_treeid[body])
    if mover not in moving:
      moving[mover] = geom_shape(model, p, mover, ZERO)
    if (fixed, tree) not in still:
      still[fixed, tree] = geom_shape(model, p, fixed, p.origin[body])
  return (list(still), list(still.values())), (list(moving), list(moving.values()))


def _in_loops(model: Model, p: Poses) -> tuple[Keyed, Keyed]:
  """Return the same, found by loops."""
  roles = [_roles(model, pair) for pair in world_pairs(model)]
  movers = list(dict.fromkeys(mover for _, mover in roles))
  touched: dict[tuple[int, int], int] = {}
  for fixed, mover in roles:
    body = int(model.geom_bodyid[mover])
    touched.setdefault((fixed, int(model.body_treeid[body])), body)
  bodies, geoms = list(touched.values()), [fixed for fixed, _ in touched]
  still = geom_shapes(model, p, geoms, lambda i: p.origin[follow(bodies, i)])
  return (list(touched), still), (movers, geom_shapes(model, p, movers, lambda _: ZERO))


def _roles(model: Model, pair: ContactPair) -> tuple[int, int]:
  """Return the geom that stands still and the one that moves."""
  return (pair.geom1, pair.geom2) if is_still(model, pair.geom1) else (pair.geom2, pair.geom1)
