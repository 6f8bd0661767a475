"""Feet of a robot: for each leg the body that is on the ground, and its shapes that touch it."""

from dataclasses import dataclass

import numpy as np

from physics.robot.names import known_name
from physics.robot.skeleton import Skeleton

# Heights over the height of the joint where the limb begins, since a trunk's origin may be anywhere:
NEAR = 0.25  # a lower body may be a foot
LOW = 0.45  # two feet below one lower body belong to one leg
ANKLE = 0.3  # joints of a leg that are lower belong to its ankle
LEVEL = 0.04  # shapes of a foot that are not higher touch the ground with it
TOUCH = 0.01  # other bodies of a leg that are not higher do so too


@dataclass(frozen=True)
class Foot:
  """A foot: its name, its body, and the geoms that touch the ground."""

  name: str
  body: int
  geoms: tuple[int, ...]


@dataclass(frozen=True)
class Leg(Foot):
  """A foot with the joints that move it and no other foot, from the trunk on."""

  joints: tuple[int, ...]
  wheel: int = -1  # joint about which the foot rolls, driven or not; -1: it is no wheel


class NoLegs(ValueError):
  """The error for a robot with fewer than two ends of chains of joints on the ground."""


def find_feet(skeleton: Skeleton, path: str) -> list[Foot]:
  """Return the lowest body of each leg, in the order of the bodies; raise NoLegs if there are not two."""
  lowest = skeleton.lowest()
  if not lowest:
    raise ValueError(
      f"{path}: no shape of the robot collides: give its feet shapes with contype or conaffinity"
    )
  floor = min(lowest.values())
  reach = {body: skeleton.start(body) - floor for body in lowest if skeleton.drive(body)}
  near = [body for body in reach if lowest[body] < floor + NEAR * reach[body]]
  found: list[int] = []
  for body in sorted(near, key=lambda body: (lowest[body] > floor + LEVEL * reach[body], body)):
    if not any(_same_leg(skeleton, body, other, floor + LOW * reach[body]) for other in found):
      found.append(body)
  legs = [_leg(skeleton, body, near, floor + LOW * reach[body]) for body in found]
  found = [min(leg, key=lambda body: lowest[body]) for leg in legs]
  if len(found) < 2:
    names = ", ".join(skeleton.body_name(body) for body in found) or "none"
    raise NoLegs(
      f"{path}: no legs found: below the trunk '{skeleton.body_name(skeleton.root)}' these bodies reach the "
      f"ground: {names}; name two or more as env.feet=[...]"
    )
  return [_foot(skeleton, body) for body in sorted(found)]


def named_feet(skeleton: Skeleton, names: tuple[str, ...], path: str) -> list[Foot]:
  """Return feet that are named by a body, geom or site; raise ValueError if there is none of that name."""
  mj = skeleton.mj
  bodies = {mj.body(body).name: body for body in skeleton.bodies}
  geoms = {mj.geom(g).name: int(mj.geom_bodyid[g]) for g in range(mj.ngeom) if mj.geom(g).name}
  sites = {mj.site(s).name: int(mj.site_bodyid[s]) for s in range(mj.nsite) if mj.site(s).name}
  known = sites | geoms | bodies
  feet = []
  for name in names:
    body = known[known_name(name, known, "body, geom or site", "env.feet", path)]
    if body not in skeleton.lowest():
      raise ValueError(f"{path}: env.feet: '{name}' has no shape that collides, so it cannot stand")
    foot = _foot(skeleton, body)
    feet.append(Foot(name, body, (mj.geom(name).id,)) if name in geoms else Foot(name, body, foot.geoms))
  return feet


def legs_of(skeleton: Skeleton, feet: list[Foot], path: str) -> list[Leg]:
  """Return the legs that end in feet; raise ValueError if no joint moves a foot alone."""
  moved = [skeleton.drive(foot.body) for foot in feet]
  legs = []
  for foot, joints in zip(feet, moved, strict=True):
    own = tuple(joint for joint in joints if sum(joint in others for others in moved) == 1)
    if not own:
      raise ValueError(f"{path}: env.feet: no joint moves '{foot.name}' and no other foot")
    legs.append(Leg(foot.name, foot.body, foot.geoms, own, skeleton.wheel(foot.body)))
  return legs


def limbs(skeleton: Skeleton) -> list[Leg]:
  """Return the chains of two or more joints from the trunk on, each with its last body as its foot."""
  bodies = sorted(skeleton.lowest(), key=lambda body: len(skeleton.drive(body)))
  ends = {joints[0]: body for body in bodies if len(joints := skeleton.drive(body)) > 1}
  return [Leg(**vars(_foot(skeleton, end)), joints=tuple(skeleton.drive(end))) for end in ends.values()]


def beside(skeleton: Skeleton, legs: list[Leg]) -> list[int]:
  """Return the bodies other than trunk and feet that touch the ground with them, such as toes and casters."""
  lowest, starts = skeleton.lowest(), {leg.joints[0] for leg in legs}
  level = {one: TOUCH * (skeleton.start(one) or skeleton.start(legs[0].body)) for one in lowest}
  low = [one for one, z in lowest.items() if z <= min(lowest.values()) + level[one]]
  others = {skeleton.root, *(leg.body for leg in legs)}
  driven = {body: skeleton.drive(body) for body in low if body not in others}
  return [body for body, joints in driven.items() if not joints or starts & {*joints}]


def phases(skeleton: Skeleton, feet: list[Leg]) -> tuple[float, ...]:
  """Return the phase of each foot, 0 or 0.5, such that neighbours on one side and opposite feet alternate.

  Two legs walk, four trot, six have a tripod gait.
  """
  places = np.array([skeleton.to_root(skeleton.data.geom_xpos[foot.geoms[0]]) for foot in feet])
  left = places[:, 1] > places[:, 1].mean()
  found = np.zeros(len(feet))
  for side in (True, False):
    members = np.flatnonzero(left == side)
    rank = np.argsort(np.argsort(-places[members, 0]))
    found[members] = 0.5 * ((rank + (not side)) % 2)
  return tuple(found.tolist())


def _same_leg(skeleton: Skeleton, one: int, other: int, height: float) -> bool:
  """Return whether the last body that carries both is lower than `height` [m]."""
  common = [body for body in skeleton.chain(one) if body in skeleton.chain(other)][-1]
  return bool(common != skeleton.root and (common in (one, other) or skeleton.data.xpos[common][2] < height))


def _leg(skeleton: Skeleton, body: int, near: list[int], height: float) -> list[int]:
  return [other for other in near if other == body or _same_leg(skeleton, body, other, height)]


def _foot(skeleton: Skeleton, body: int) -> Foot:
  """Return the foot of a body: named after the one geom that touches the ground, or after the body."""
  mj, heights = skeleton.mj, skeleton.heights()
  own = [geom for geom in heights if mj.geom_bodyid[geom] == body]
  low = min(heights[geom] for geom in own)
  level = low + LEVEL * max(skeleton.start(body) - low, 0.0)
  touching = tuple(geom for geom in own if heights[geom] <= level)
  name = mj.geom(touching[0]).name if len(touching) == 1 else ""
  return Foot(name or skeleton.body_name(body), body, touching)
