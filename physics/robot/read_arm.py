"""Reader of an arm: its description, and a model ready to learn to reach."""

import contextlib
import functools

import mujoco
import numpy as np

from physics.robot.arm import Arm
from physics.robot.description import Asked
from physics.robot.end_effector import FEWEST, Tip, find_tip
from physics.robot.feet import Leg, find_feet, legs_of
from physics.robot.gripper import GRASP, Gripper, find_gripper
from physics.robot.home import home_of_file, keyframes
from physics.robot.prepare import finish, hold, put_site
from physics.robot.servo import Servo, facts, guess_by_sag, put_servos, servos_of, targets_of
from physics.robot.skeleton import Skeleton
from physics.robot.source import (
  FLOOR,
  base_of,
  compiled,
  driven_joints,
  keep_robot,
  leave_out_equalities,
  open_robot,
  set_collisions,
)
from physics.robot.table import find_table
from physics.robot.warnings import arm_doubts, other_arm_doubts
from physics.robot.workspace import INNER, POSES, ranges, reachable, survey, take_middle


@functools.lru_cache(maxsize=4)
def read_arm(asked: Asked) -> tuple[Arm, mujoco.MjSpec]:
  """Return an arm's description and its model: on a floor, with servos, a site at its tip, keyframe `home`.

  Do not change the model. Raises FileNotFoundError and ValueError for what cannot reach, in one line.
  """
  doubts: list[str] = []
  spec, rigid, skeleton, keys = _opened(asked, doubts)
  tip = _tip(skeleton, asked, doubts)
  home = home_of_file(skeleton, keys, asked.home, asked.path)
  gripper = find_gripper(spec, skeleton, tip, asked, doubts) if asked.grips else None
  skeleton, tip = _open(spec, rigid, skeleton, gripper) if gripper else (skeleton, tip)
  solid = compiled(rigid, asked.path)
  if home is None:
    take_middle(skeleton, solid, tip)
  found = survey(skeleton, solid, tip, POSES, INNER[0])
  load, inertia = np.abs(found.load).max(0), found.inertia.max(0)
  servos = servos_of(skeleton, asked, guess_by_sag(skeleton, load, inertia), doubts)
  targets, turns, reach = reachable(skeleton, found, servos, asked.path)
  table = (
    find_table(skeleton, found, (reach, gripper.side), asked, faces=home is not None) if gripper else None
  )
  stance, held = _prepare(spec, skeleton, tip, servos, gripper, doubts)
  finish(spec, skeleton, np.append(stance, gripper.opened if gripper else []), asked.timestep)
  site = tip.site or skeleton.body_name(tip.body)
  doubts += arm_doubts(compiled(spec, asked.path), site)
  arm = Arm(
    path=asked.path,
    angles=skeleton.data.qpos[skeleton.columns].copy(),
    stance=stance,
    home="above the cube" if gripper else home or "found",
    mass=float(skeleton.mj.body_subtreemass[skeleton.root]),
    **facts(servos),
    doubts=tuple(doubts),
    site=site,
    tip=tip.words(skeleton),
    held=held,
    limits=ranges(skeleton),
    reach=reach,
    targets=targets,
    turns=turns,
    gripper=gripper,
    table=table,
  )
  return arm, spec


def _opened(
  asked: Asked, doubts: list[str]
) -> tuple[mujoco.MjSpec, mujoco.MjSpec, Skeleton, dict[str, dict[str, np.ndarray]]]:
  """Return a file's arm alone above a floor, the same with solid links, its skeleton, and its keyframes."""
  spec = open_robot(asked.path, doubts)
  scene = compiled(spec, asked.path)
  name = scene.body(base_of(scene, asked.path, asked.site, doubts)).name
  if not keep_robot(spec, name, doubts):
    _lower_floor(spec, name, asked)
  rigid = spec.copy()
  set_collisions(rigid, self_collision=True)
  set_collisions(spec, self_collision=asked.self_collision)
  mj = compiled(spec, asked.path)
  root = int(mj.body(name).id)
  return spec, rigid, Skeleton(mj, root, driven_joints(mj, root, doubts)), keyframes(scene)


def _open(
  spec: mujoco.MjSpec, rigid: mujoco.MjSpec, skeleton: Skeleton, gripper: Gripper
) -> tuple[Skeleton, Tip]:
  """Return the skeleton of an arm with an open gripper, and its tip between the fingers."""
  qpos = skeleton.data.qpos.copy()
  for joint, position in gripper.pose.items():
    qpos[skeleton.mj.jnt_qposadr[joint]] = position
  for one in (spec, rigid):
    gripper.put_sites(one)
  found = Skeleton(spec.copy().compile(), skeleton.root, skeleton.joints)
  found.take(qpos)
  return found, Tip(int(found.mj.site(GRASP).bodyid[0]), GRASP, found.joints)


def _prepare(
  spec: mujoco.MjSpec,
  skeleton: Skeleton,
  tip: Tip,
  servos: list[Servo],
  gripper: Gripper | None,
  doubts: list[str],
) -> tuple[np.ndarray, tuple[str, ...]]:
  """Hold all joints but the arm's and the gripper's; put servos and the tip's site.

  Returns the targets that hold home [nu] [rad, m] and the names of the held joints.
  """
  own = [joint for joint in range(skeleton.mj.njnt) if skeleton.mj.jnt_bodyid[joint] in skeleton.bodies]
  held = [joint for joint in own if joint not in (*skeleton.joints, *(gripper.pose if gripper else ()))]
  kept = gripper.equalities if gripper else frozenset[int]()
  leave_out_equalities(spec, {skeleton.joint_name(joint) for joint in tip.joints}, kept)
  hold(spec, skeleton, held)
  put_servos(spec, [*servos, *(gripper.servos if gripper else ())], doubts)
  if tip.site is None:
    put_site(spec, skeleton.body_name(tip.body), skeleton.body_name(tip.body))
  data = skeleton.data
  stance = targets_of(skeleton, servos, data.qfrc_bias - data.qfrc_gravcomp)
  return stance, tuple(map(skeleton.joint_name, held))


def _tip(skeleton: Skeleton, asked: Asked, doubts: list[str]) -> Tip:
  """Return the tip, and move its joints alone; raise ValueError if legs stand on the ground."""
  tip, legs = find_tip(skeleton, asked), list[Leg]()
  with contextlib.suppress(ValueError):
    legs = legs_of(skeleton, find_feet(skeleton, asked.path), asked.path)
  feet = [leg.name for leg in legs if len(leg.joints) > FEWEST]
  if len(feet) > 1 and not (asked.site or asked.joints):
    raise ValueError(
      f"{asked.path}: legs reach the ground ({', '.join(feet)}): to walk, add <freejoint/> to "
      f"'{skeleton.body_name(skeleton.root)}'; to reach with an arm, name its tip as env.site=<site or body>"
    )
  doubts += other_arm_doubts(skeleton, tip)
  skeleton.move(tip.joints)
  return tip


def _lower_floor(spec: mujoco.MjSpec, base: str, asked: Asked) -> None:
  """Put a new floor below the base, or below all of an arm that hangs."""
  mj = compiled(spec, asked.path)
  skeleton = Skeleton(mj, int(mj.body(base).id), [])
  heights = skeleton.lowest()
  fixed = [height for body, height in heights.items() if mj.body_weldid[body] == 0]
  level = min(fixed, default=float(skeleton.data.xpos[skeleton.root][2]))
  lowest = min(heights.values(), default=level)
  reach = float(mj.stat.extent)
  spec.geom(FLOOR).pos = [0, 0, level if lowest > level - 0.1 * reach else level - 2 * reach]
