"""Tip of an arm: what it brings to a target, and the joints that move it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import mujoco
import numpy as np

from physics.robot.description import Asked
from physics.robot.names import known_name, named_joints
from physics.robot.skeleton import Skeleton
from physics.robot.source import SCALAR

FEWEST = 2  # joints of an arm
# Words in the names of sites and bodies that are the end of an arm, the best first.
ENDS = (
  "tcp",
  "ee",
  "eef",
  "effector",
  "grasp",
  "grip",
  "pinch",
  "attachment",
  "tool",
  "tip",
  "flange",
  "hand",
)
GRIPPERS = ("grip", "finger", "jaw", "claw", "knuckle")  # in the names of joints that open a gripper


@dataclass(frozen=True)
class Tip:
  """The tip of an arm: a site, or the frame of a body that has none."""

  body: int
  site: str | None  # None: the body's frame
  joints: list[int]  # that move

  def words(self, skeleton: Skeleton) -> str:
    """Return what the tip is."""
    return f"site '{self.site}'" if self.site else f"frame of body '{skeleton.body_name(self.body)}'"


def find_tip(skeleton: Skeleton, asked: Asked) -> Tip:
  """Return the tip that is asked for, or found; raise ValueError if fewer than two joints move it."""
  tip = _named(skeleton, asked) if asked.site else _found(skeleton, asked)
  moving = [joint for joint in tip.joints if joint in skeleton.drive(tip.body)]
  if len(moving) < FEWEST:
    raise ValueError(
      f"{asked.path}: {len(moving)} joints move the {tip.words(skeleton)}, and an arm has {FEWEST} or more: "
      "name its tip as env.site=<site or body>"
    )
  return tip


def _named(skeleton: Skeleton, asked: Asked) -> Tip:
  mj = skeleton.mj
  sites = {mj.site(s).name: int(mj.site_bodyid[s]) for s in range(mj.nsite) if mj.site(s).name}
  bodies = {skeleton.body_name(body): body for body in skeleton.bodies}
  known = bodies | {name: body for name, body in sites.items() if body in skeleton.bodies}
  name = known_name(asked.site or "", known, "site or body", "env.site", asked.path)
  joints = named_joints(skeleton, asked) or skeleton.drive(known[name])
  return Tip(known[name], name if name in sites else None, joints)


def _found(skeleton: Skeleton, asked: Asked) -> Tip:
  """Return the tip at the end of the arm: a site, else a body by its name, else the last link."""
  named = named_joints(skeleton, asked)
  end = max(
    (int(skeleton.mj.jnt_bodyid[j]) for j in named), key=lambda body: len(skeleton.drive(body)), default=-1
  )
  end = _end(skeleton) if end < 0 else end
  joints = named or skeleton.drive(end)
  rigid = _rigid(skeleton, end)
  mj = skeleton.mj
  sites = [(mj.site(s).name, int(mj.site_bodyid[s])) for s in range(mj.nsite) if mj.site_bodyid[s] in rigid]
  for name, body in sorted(sites, key=lambda site: _rank(site[0])):
    if _rank(name)[0] < len(ENDS):
      return Tip(body, name, joints)
  frames = [body for body in rigid if _rank(skeleton.body_name(body))[0] < len(ENDS)]
  return Tip(min(frames, key=lambda b: _rank(skeleton.body_name(b)), default=end), None, joints)


def _end(skeleton: Skeleton) -> int:
  """Return the last link of the longest chain of joints, before it branches into fingers.

  Branches are fingers where none has more joints than lead to it. A joint with the name of a gripper's opens
  a gripper.
  """
  mj = skeleton.mj
  own = np.bincount(mj.jnt_bodyid[skeleton.joints], minlength=mj.nbody)
  depth = own.copy()  # joints on the longest chain from each body on
  children: dict[int, list[int]] = {body: [] for body in skeleton.bodies}
  for body in reversed(skeleton.bodies):
    depth[body] += max((depth[child] for child in children[body]), default=0)
    if body != skeleton.root:
      children[int(mj.body_parentid[body])].append(body)
  body, passed = skeleton.root, int(own[skeleton.root])
  while branches := [child for child in sorted(children[body]) if depth[child]]:
    longest = max(branches, key=lambda child: depth[child])
    if _opens(skeleton, longest, passed) or (len(branches) > 1 and depth[longest] <= passed):
      break
    body, passed = longest, passed + int(own[longest])
  return body


def _opens(skeleton: Skeleton, body: int, passed: int) -> bool:
  """Return whether the joints of a body, which `passed` joints move, open a gripper."""
  own = [skeleton.joint_name(joint) for joint in skeleton.joints if skeleton.mj.jnt_bodyid[joint] == body]
  return passed >= FEWEST and any(word in name.lower() for name in own for word in GRIPPERS)


def _rigid(skeleton: Skeleton, end: int) -> list[int]:
  """Return the last link and the bodies that are fixed to it."""
  scalar = np.isin(skeleton.mj.jnt_type, SCALAR)
  moved = {*skeleton.mj.jnt_bodyid[scalar].tolist()}
  found = [end]
  for body in skeleton.bodies:
    if int(skeleton.mj.body_parentid[body]) in found and body not in moved:
      found.append(body)
  return found


def _rank(name: str) -> tuple[int, int]:
  """Return how much a name is that of an arm's end: the place of its word, and its length."""
  parts = re.split(r"[^a-z]+", name.lower())
  fits = [word in parts if len(word) <= len("tip") else word in name.lower() for word in ENDS]
  return (fits.index(True) if any(fits) else len(ENDS)), len(name)


def tip_place(data: mujoco.MjData, tip: Tip) -> np.ndarray:
  """Return where the tip is [3] [m]."""
  return data.site(tip.site).xpos if tip.site else data.xpos[tip.body]


def tip_turn(data: mujoco.MjData, tip: Tip) -> np.ndarray:
  """Return how the tip is turned, a rotation matrix [3, 3]."""
  turn = data.site(tip.site).xmat if tip.site else data.xmat[tip.body]
  return turn.reshape(3, 3).copy()
