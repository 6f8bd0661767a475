"""End effector of an arm: its tip, and the joints that move it."""

import re
from dataclasses import dataclass

import mujoco
import numpy as np

from physics.robot.description import Asked
from physics.robot.names import known_name, named_joints
from physics.robot.skeleton import Skeleton
from physics.robot.source import ON_JOINT, SCALAR

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
GRIPPERS = ("grip", "finger", "jaw", "claw", "knuckle")  # in names of joints and actuators of a gripper
LIMBS, ALIKE = 3, 0.6  # chains from one body that make it a hand or a trunk; their joints over the longest's


@dataclass(frozen=True)
class Tip:
  """The tip of an arm: a site, or the frame of a body that has none."""

  body: int
  site: str | None  # None: the body's frame
  joints: list[int]  # that move

  def words(self, skeleton: Skeleton) -> str:
    """Return a description of the tip."""
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
  end = _end(skeleton, asked.path) if end < 0 else end
  joints = named or skeleton.drive(end)
  mj = skeleton.mj
  rigid = [body for body in skeleton.bodies if mj.body_weldid[body] == mj.body_weldid[end]]
  sites = [(mj.site(s).name, int(mj.site_bodyid[s])) for s in range(mj.nsite) if mj.site_bodyid[s] in rigid]
  for name, body in sorted(sites, key=lambda site: _rank(site[0])):
    if _rank(name)[0] < len(ENDS):
      return Tip(body, name, joints)
  frames = [body for body in rigid if _rank(skeleton.body_name(body))[0] < len(ENDS)]
  return Tip(min(frames, key=lambda b: _rank(skeleton.body_name(b)), default=end), None, joints)


def _end(skeleton: Skeleton, path: str) -> int:
  """Return the last link of the longest chain of joints, before it branches into fingers.

  Branches are fingers where none has more joints than lead to it, be they driven or as long as a driven one.
  Raises ValueError where several long chains branch off, as in a hand.
  """
  mj, body = skeleton.mj, skeleton.root
  scalar = np.flatnonzero(np.isin(mj.jnt_type, SCALAR)).tolist()
  while children := [child for child in skeleton.bodies if mj.body_parentid[child] == body]:
    passed = len(skeleton.drive(body))
    driven, depth = ({c: _beyond(skeleton, c, of) for c in children} for of in (skeleton.joints, scalar))
    longest = max(children, key=driven.__getitem__)
    branches = [child for child in children if driven[child] or depth[child] == depth[longest]]
    fingers = len(branches) > 1 and driven[longest] <= passed
    opens = passed >= FEWEST and _opens(skeleton, longest, depth[longest] == 1)
    if not driven[longest] or fingers or opens:
      break
    limbs = sum(depth[child] >= max(ALIKE * depth[longest], FEWEST) for child in children)
    if limbs >= LIMBS:
      raise ValueError(
        f"{path}: {limbs} chains of joints branch off at '{skeleton.body_name(body)}', like fingers or "
        "limbs: name the tip of one as env.site=<site or body>; to walk, add <freejoint/> to the trunk"
      )
    body = longest
  return body


def _beyond(skeleton: Skeleton, body: int, joints: list[int]) -> int:
  """Return the number of `joints` on the longest chain from a body on."""
  chains = [chain for one in skeleton.bodies if body in (chain := skeleton.chain(one))]
  bodies = skeleton.mj.jnt_bodyid[joints]
  return max(int(np.isin(bodies, chain[chain.index(body) :]).sum()) for chain in chains)


def _opens(skeleton: Skeleton, body: int, last: bool) -> bool:
  """Return whether the joints of a body open a gripper.

  They or their actuators have such names, an equality couples them to a joint beside them, or they are the
  last ones, and the link before them has a site with the name of a tip.
  """
  mj = skeleton.mj
  own = [joint for joint in skeleton.joints if mj.jnt_bodyid[joint] == body]
  actuators = np.isin(mj.actuator_trntype, ON_JOINT) & np.isin(mj.actuator_trnid[:, 0], own)
  names = [*map(skeleton.joint_name, own), *(mj.actuator(int(i)).name for i in np.flatnonzero(actuators))]
  pairs = np.stack([mj.eq_obj1id, mj.eq_obj2id], 1)[mj.eq_type == mujoco.mjtEq.mjEQ_JOINT]
  coupled = mj.jnt_bodyid[pairs[np.isin(pairs, own).any(1) & (pairs >= 0).all(1)]].ravel().tolist()
  before = mj.body_weldid[mj.site_bodyid] == mj.body_weldid[mj.body_parentid[body]]
  return (
    any(word in name.lower() for name in names for word in GRIPPERS)
    or any(body not in skeleton.chain(one) and one not in skeleton.chain(body) for one in coupled)
    or (last and any(_rank(mj.site(int(site)).name)[0] < len(ENDS) for site in np.flatnonzero(before)))
  )


def _rank(name: str) -> tuple[int, int]:
  """Return the rank of a name as the end of an arm: the place of its word, and its length."""
  parts = re.split(r"[^a-z]+", name.lower())
  fits = [word in parts if len(word) <= len("tip") else word in name.lower() for word in ENDS]
  return (fits.index(True) if any(fits) else len(ENDS)), len(name)


def tip_place(data: mujoco.MjData, tip: Tip) -> np.ndarray:
  """Return the position of the tip [3] [m]."""
  return data.site(tip.site).xpos if tip.site else data.xpos[tip.body]


def tip_turn(data: mujoco.MjData, tip: Tip) -> np.ndarray:
  """Return the orientation of the tip, a rotation matrix [3, 3]."""
  turn = data.site(tip.site).xmat if tip.site else data.xmat[tip.body]
  return turn.reshape(3, 3).copy()
