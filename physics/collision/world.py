"""Contacts of moving spheres and capsules with what stands still: planes, and fixed spheres and capsules.

Every candidate is unrolled: a bounding test, then, if any lane is near, an entry in the group's list. The
list has room for all candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from physics.collision.geometry import (
  CAPSULE,
  PLANE,
  Segment,
  SegmentPair,
  Touch,
  default_hint,
  geom_axis,
  geom_bound,
  geom_segment,
  inverse_square,
)
from physics.compact import GroupList
from physics.constraint import contact_law
from physics.kinematics import Poses
from physics.model import Model
from physics.pairs import ContactPair
from physics.spatial import Vector, dot, vector
from physics.trace import Number, Program, where

Push = Callable[
  [Touch, Vector | None], None
]  # the contact, and the tangent hint if it is not the normal's own


def is_still(model: Model, geom: int) -> bool:
  """Return whether a geom never moves."""
  return bool(model.body_weldid[model.geom_bodyid[geom]] == 0)


def world_pairs(model: Model) -> list[ContactPair]:
  """Return the pairs with one geom that never moves."""
  return [pair for pair in model.pairs if is_still(model, pair.geom1) or is_still(model, pair.geom2)]


def find_world_contacts(program: Program, model: Model, p: Poses, bodies: list[int]) -> GroupList:
  """Return the contacts with the world; `bodies` are the welded bodies that an entry's `body` indexes.

  Fields: body, geom_body, point and normal (relative to the tree origin, world axes), hint, distance, and the
  constants of `contact_law`, the weight zero in lanes without this contact.
  """
  pairs = world_pairs(model)
  found = GroupList(program, sum(_most_contacts(model, pair) for pair in pairs))
  for pair in pairs:
    still, moving = (pair.geom1, pair.geom2) if is_still(model, pair.geom1) else (pair.geom2, pair.geom1)
    push = _pusher(
      program, model, found, pair, bodies.index(_welded(model, moving)), int(model.geom_bodyid[moving])
    )
    if model.geom_type[still] == PLANE:
      _plane_contacts(model, p, pair, (still, moving), push)
    else:
      _fixed_contacts(program, model, p, pair, (still, moving), push)
  return found


def _welded(model: Model, geom: int) -> int:
  return int(model.body_weldid[model.geom_bodyid[geom]])


def _most_contacts(model: Model, pair: ContactPair) -> int:
  types = {int(model.geom_type[geom]) for geom in (pair.geom1, pair.geom2)}
  if types == {CAPSULE}:
    return 3
  return 2 if types == {PLANE, CAPSULE} else 1


def _pusher(
  program: Program, model: Model, found: GroupList, pair: ContactPair, body: int, geom_body: int
) -> Push:
  constants = contact_law(model, pair)

  def push(touch: Touch, hint: Vector | None) -> None:
    with program.when_any(touch.active):
      distance, normal, point = touch.resolve()
      entry: dict[str, object] = {"body": body, "geom_body": geom_body, "distance": distance}
      for name, value in (("point", point), ("normal", normal), ("hint", hint or default_hint(normal))):
        entry |= {f"{name}.{axis}": component for axis, component in zip("xyz", value, strict=True)}
      found.push(entry | constants | {"weight": where(touch.active, constants["weight"], 0.0)})

  return push


def _plane_contacts(model: Model, p: Poses, pair: ContactPair, geoms: tuple[int, int], push: Push) -> None:
  """Test a sphere, or both ends of a capsule, against a plane; a capsule's axis leads its tangents."""
  plane, moving = geoms
  body = int(model.geom_bodyid[plane])
  normal = vector(p.rotation[body] @ geom_axis(model, plane))
  level = dot(normal, p.relative(body, vector(model.geom_pos[plane])))
  segment = geom_segment(model, p, moving)
  height = dot(normal, p.origin[model.geom_bodyid[moving]])
  is_capsule = model.geom_type[moving] == CAPSULE
  for end in (1.0, -1.0) if is_capsule else (0.0,):
    center = segment.center + segment.half_axis * end
    distance = (dot(normal, center) + height) - (level + segment.radius)
    point = center - normal * (segment.radius + 0.5 * distance)
    touch = Touch(distance < pair.margin, partial(_plane_touch, distance, normal, point))
    push(touch, segment.half_axis if is_capsule else None)


def _plane_touch(distance: Number, normal: Vector, point: Vector) -> tuple[Number, Vector, Vector]:
  return distance, normal, point


def _fixed_contacts(
  program: Program, model: Model, p: Poses, pair: ContactPair, geoms: tuple[int, int], push: Push
) -> None:
  """Test a moving sphere or capsule against a still one, relative to the moving one's tree origin."""
  still, moving = geoms
  segments = {geom: geom_segment(model, p, geom) for geom in geoms}
  fixed = segments[still]
  origin = p.origin[model.geom_bodyid[moving]]
  segments[still] = Segment(fixed.center - origin, fixed.half_axis, fixed.radius)
  one, two = segments[pair.geom1], segments[pair.geom2]
  separation = one.center - two.center
  reach = sum(geom_bound(model, geom) for geom in geoms) + pair.margin
  with program.when_any(dot(separation, separation) < reach * reach):
    inverses = (inverse_square(model, pair.geom1), inverse_square(model, pair.geom2))
    both = SegmentPair(one, two, inverses, pair.margin)
    nearest, parallel = both.nearest(all(model.geom_type[geom] == CAPSULE for geom in geoms))
    push(_towards(nearest, pair.geom2 == moving), None)
    if parallel is not False:
      with program.when_any(parallel):
        for touch in both.at_ends(parallel):
          push(_towards(touch, pair.geom2 == moving), None)


def _towards(touch: Touch, moving_is_second: bool) -> Touch:
  """Return the contact with its normal towards the moving geom."""
  if moving_is_second:
    return touch

  def resolve() -> tuple[Number, Vector, Vector]:
    distance, normal, point = touch.resolve()
    return distance, -normal, point

  return Touch(touch.active, resolve)
