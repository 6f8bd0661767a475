"""Contacts of moving spheres and capsules with what stands still: planes, and fixed spheres and capsules.

Every candidate is unrolled: a bounding test, then, if any lane is near, an entry in the group's list. The list has room
for all candidates.
"""

from __future__ import annotations

from collections.abc import Callable

from physics.collision.geometry import (
  CAPSULE,
  PLANE,
  Segment,
  Touch,
  default_hint,
  geom_axis,
  geom_bound,
  geom_segment,
  touch_segments,
)
from physics.compact import GroupList
from physics.constraint import contact_law
from physics.kinematics import Poses
from physics.model import ContactPair, Model
from physics.spatial import Vector, dot, vector
from physics.trace import Program, where

Push = Callable[[Touch, Vector], None]  # a touch, normal from the still geom to the moving one, and the tangent hint


def is_still(model: Model, geom: int) -> bool:
  """Return whether a geom never moves."""
  return bool(model.body_weldid[model.geom_bodyid[geom]] == 0)


def world_pairs(model: Model) -> list[ContactPair]:
  """Return the pairs with one geom that never moves."""
  return [pair for pair in model.pairs if is_still(model, pair.geom1) or is_still(model, pair.geom2)]


def find_world_contacts(program: Program, model: Model, p: Poses, bodies: list[int]) -> GroupList:
  """Return the list of contacts with the world; `bodies` are the welded bodies that an entry's `body` indexes.

  Fields: body, geom_body, point and normal (relative to the tree origin, world axes), hint, distance, and the constants
  of `contact_law`, the weight zero in lanes without this contact.
  """
  pairs = world_pairs(model)
  found = GroupList(program, sum(_most_contacts(model, pair) for pair in pairs))
  for pair in pairs:
    still, moving = (pair.geom1, pair.geom2) if is_still(model, pair.geom1) else (pair.geom2, pair.geom1)
    push = _pusher(program, model, found, pair, bodies.index(_welded(model, moving)), int(model.geom_bodyid[moving]))
    if model.geom_type[still] == PLANE:
      _plane_contacts(model, p, still, moving, push)
    else:
      _fixed_contacts(program, model, p, pair, (still, moving), push)
  return found


def _welded(model: Model, geom: int) -> int:
  return int(model.body_weldid[model.geom_bodyid[geom]])


def _most_contacts(model: Model, pair: ContactPair) -> int:
  types = {int(model.geom_type[geom]) for geom in (pair.geom1, pair.geom2)}
  if types == {CAPSULE}:
    return 5
  return 2 if types == {PLANE, CAPSULE} else 1


def _pusher(
  program: Program, model: Model, found: GroupList, pair: ContactPair, body: int, geom_body: int
) -> Push:
  constants = contact_law(model, pair)

  def push(touch: Touch, hint: Vector) -> None:
    active = (touch.distance < constants["margin"]) & touch.counts
    with program.when_any(active):
      entry: dict[str, object] = {"body": body, "geom_body": geom_body, "distance": touch.distance}
      for name, value in (("point", touch.point), ("normal", touch.normal), ("hint", hint)):
        entry |= {f"{name}.{axis}": component for axis, component in zip("xyz", value, strict=True)}
      found.push(entry | constants | {"weight": where(active, constants["weight"], 0.0)})

  return push


def _plane_contacts(model: Model, p: Poses, plane: int, moving: int, push: Push) -> None:
  """Test a sphere, or both ends of a capsule, against a plane; a capsule's axis leads its tangents."""
  body = int(model.geom_bodyid[plane])
  normal = vector([float(x) for x in p.rotation[body] @ geom_axis(model, plane)])
  level = dot(normal, [float(x) for x in p.relative(body, vector(model.geom_pos[plane]))])
  segment = geom_segment(model, p, moving)
  height = dot(normal, p.origin[model.geom_bodyid[moving]])
  is_capsule = model.geom_type[moving] == CAPSULE
  hint = segment.half_axis if is_capsule else default_hint(normal)
  for end in (1.0, -1.0) if is_capsule else (0.0,):
    center = segment.center + segment.half_axis * end
    distance = (dot(normal, center) + height) - (level + segment.radius)
    push(Touch(distance, normal, center - normal * (segment.radius + 0.5 * distance), True), hint)


def _fixed_contacts(
  program: Program, model: Model, p: Poses, pair: ContactPair, geoms: tuple[int, int], push: Push
) -> None:
  """Test a moving sphere or capsule against one that stands still, relative to the moving one's tree origin."""
  still, moving = (geom_segment(model, p, geom) for geom in geoms)
  still = Segment(still.center - p.origin[model.geom_bodyid[geoms[1]]], still.half_axis, still.radius)
  separation = still.center - moving.center
  reach = sum(geom_bound(model, geom) for geom in geoms) + pair.margin
  squares = [float(model.geom_size[geom, 1]) ** 2 if model.geom_type[geom] == CAPSULE else 1.0 for geom in geoms]
  with program.when_any(dot(separation, separation) < reach * reach):
    both_capsules = all(model.geom_type[geom] == CAPSULE for geom in geoms)
    nearest, at_ends = touch_segments(still, moving, (squares[0], squares[1]), both_capsules)
    push(nearest, default_hint(nearest.normal))
    if both_capsules:
      with program.when_any(~nearest.counts):
        for touch in at_ends(pair.margin):
          push(touch, default_hint(touch.normal))
