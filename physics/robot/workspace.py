"""Workspace of an arm: joint loads, a home pose in its middle, and positions that its tip can reach."""

from collections import Counter
from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco import mjtJoint

from physics.model.model import Floats
from physics.robot.end_effector import Tip, tip_place, tip_turn
from physics.robot.servo import Servo
from physics.robot.skeleton import Skeleton
from physics.robot.source import FLOOR

POSES, HOMES = 2000, 400  # random poses that are sampled for the workspace and for a home pose
INNER = 0.9, 0.5  # parts of the joints' ranges in which these lie
DEEP = 1e-3  # depth of a contact that counts [m]
ALWAYS = 0.3  # share of poses above which two links that touch do so by their shapes alone
FREE_RANGE = np.pi, 1.0  # most to both sides of home, of joints that turn and that slide [rad], [m]
STRENGTH = 0.8  # of the largest torque: what holds a target may need no more
CLEARANCE = 0.05  # least height of a target above the floor, over the reach
NEAR = 0.25  # least distance of a target from the first joint, over the reach
FEWEST = 50  # targets that an arm needs
MIDDLE = 1.0  # weight of the distance from the middle of the ranges, in the choice of a home pose


@dataclass(frozen=True)
class Survey:
  """Samples of n random poses."""

  angles: Floats  # [n, joints] [rad, m]
  places: Floats  # of the tip [n, 3] [m]
  turns: Floats  # of the tip, rotation matrices [n, 3, 3]
  load: Floats  # force that holds the pose [n, nv] [N m, N]
  inertia: Floats  # of the joints [n, nv] [kg m^2, kg]
  agility: Floats  # product of the singular values of the tip's Jacobian (Yoshikawa 1985) [n]
  apart: Floats  # whether no link touches the floor or another one [n] bool


def ranges(skeleton: Skeleton) -> Floats:
  """Return the ranges of the moved joints [joints, 2] [rad, m]; a joint turns once at most.

  Of a joint that may turn further, the turn is about the present pose, as far as its limits allow. An arm is
  then in the middle of its ranges, and places behind it are as far one way as the other.
  """
  mj, joints = skeleton.mj, skeleton.joints
  turns, slides = FREE_RANGE
  half = np.where(mj.jnt_type[joints] == mjtJoint.mjJNT_SLIDE, slides, turns)
  low, high = np.where(mj.jnt_limited[joints][:, None], mj.jnt_range[joints], [-np.inf, np.inf]).T
  start = (skeleton.data.qpos[skeleton.columns] - half).clip(low, high - 2 * half)
  wide = high - low > 2 * half
  return np.where(wide, [start, start + 2 * half], [low, high]).T


def survey(skeleton: Skeleton, solid: mujoco.MjModel, tip: Tip, poses: int, inner: float) -> Survey:
  """Sample random poses in the inner part of the joints' ranges; the other joints stay as they are.

  `solid` is the model in which links collide with each other.
  """
  middle, half = ranges(skeleton).mean(1), np.ptp(ranges(skeleton), axis=1) / 2
  draws = np.random.default_rng(0).uniform(-inner, inner, (poses, len(half)))
  data, dofs = mujoco.MjData(solid), solid.jnt_dofadr[skeleton.joints]
  rows: dict[str, list[Floats]] = {name: [] for name in ("places", "turns", "load", "inertia", "agility")}
  touching = []
  jacobian, inertia = np.zeros((3, solid.nv)), np.zeros((solid.nv, solid.nv))
  for angles in middle + draws * half:
    data.qpos[:] = skeleton.data.qpos
    data.qpos[skeleton.columns] = angles
    mujoco.mj_fwdPosition(solid, data)
    mujoco.mj_fwdVelocity(solid, data)
    place = tip_place(data, tip)
    mujoco.mj_jac(solid, data, jacobian, None, place, tip.body)
    rows["places"].append(place.copy())
    rows["turns"].append(tip_turn(data, tip))
    rows["load"].append(data.qfrc_bias - data.qfrc_gravcomp)
    mujoco.mj_fullM(solid, data, inertia)
    rows["inertia"].append(np.diag(inertia).copy())
    rows["agility"].append(np.linalg.svd(jacobian[:, dofs], compute_uv=False))
    touching.append(_touching(solid, data))
  apart = _apart(touching)
  found = {name: np.array(row) for name, row in rows.items()}
  rank = int((found["agility"].max(0) > 1e-6 * found["agility"].max()).sum())
  return Survey(
    angles=middle + draws * half,
    **found | {"agility": found["agility"][:, :rank].prod(1)},
    apart=apart,
  )


def take_middle(skeleton: Skeleton, solid: mujoco.MjModel, tip: Tip) -> None:
  """Take a home pose: near the middle of the ranges, far from singular ones, with all links apart."""
  found = survey(skeleton, solid, tip, HOMES, INNER[1])
  span = ranges(skeleton)
  away = np.square((found.angles - span.mean(1)) / (np.ptp(span, axis=1) / 2)).mean(1)
  score = found.agility / max(float(found.agility.max()), 1e-9) - MIDDLE * away
  qpos = skeleton.data.qpos.copy()
  qpos[skeleton.columns] = found.angles[np.where(found.apart, score, score - 10.0).argmax()]
  skeleton.take(qpos)


def reachable(
  skeleton: Skeleton, found: Survey, servos: list[Servo], path: str
) -> tuple[Floats, Floats, float]:
  """Return positions of the tip that servos can hold [n, 3] [m], its orientations there, and the reach [m].

  The orientations are rotation matrices [n, 3, 3]. The positions are above the floor, and neither near the
  base nor where links touch. Raises ValueError if there are hardly any.
  """
  mj = skeleton.mj
  base = skeleton.data.xanchor[skeleton.joints[0]]
  distance = np.linalg.norm(found.places - base, axis=1)
  reach = float(distance.max())
  load = np.abs(found.load[:, mj.jnt_dofadr[skeleton.joints]])
  high = found.places[:, 2] > skeleton.data.geom(FLOOR).xpos[2] + CLEARANCE * reach
  held = (load <= STRENGTH * np.array([servo.effort for servo in servos])).all(1)
  chosen = found.apart & high & held & (distance > NEAR * reach)
  targets = found.places[chosen]
  if len(targets) < FEWEST:
    raise ValueError(
      f"{path}: in {len(targets)} of {len(distance)} random poses its servos can hold the tip above the "
      "floor: look at its weight, its largest torques and the height of its base"
    )
  return targets, found.turns[chosen], reach


def _touching(mj: mujoco.MjModel, data: mujoco.MjData) -> set[tuple[int, int]]:
  """Return the pairs of bodies that touch."""
  deep = data.contact.dist < -DEEP
  bodies = np.sort(mj.geom_bodyid[data.contact.geom[deep]], axis=1)
  return {(int(one), int(other)) for one, other in bodies}


def _apart(touching: list[set[tuple[int, int]]]) -> Floats:
  """Return in which poses no bodies touch, but for those that touch in many of them [n] bool."""
  counts = Counter(pair for pairs in touching for pair in pairs)
  always = {pair for pair, count in counts.items() if count > ALWAYS * len(touching)}
  return np.array([not pairs - always for pairs in touching])
