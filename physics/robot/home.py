"""Home pose of a robot: a keyframe of its file, or found with its feet below its hips and its knees bent."""

import itertools
from collections.abc import Sequence
from typing import TypeAlias

import mujoco
import numpy as np
from mujoco import mjtJoint

from physics.model.model import Floats
from physics.robot.feet import Leg
from physics.robot.names import known_name
from physics.robot.skeleton import Skeleton

PREFERRED = ("home", "stand", "bent")  # words in the names of keyframes, the best one first
WIDTHS = {mjtJoint.mjJNT_FREE: 7, mjtJoint.mjJNT_BALL: 4, mjtJoint.mjJNT_SLIDE: 1, mjtJoint.mjJNT_HINGE: 1}
UPRIGHT = 0.9  # cosine of the trunk's tilt, above which a keyframe can be a home
DEEP = 0.05  # of the lowest shape below the floor [m]: a keyframe that is deeper has no place for the trunk
STRAIGHT = {2: 0.93}  # length of a bent leg over a straight one's, by the number of legs
SQUAT = 0.5  # hip height over the length of straight legs, below which a keyframe is no home
PROSTRATE = 0.2  # the same of legs that sprawl
BENT = 0.72  # the same of more legs
ACROSS = 0.7  # cosine to the axis from right to left, above which a joint is one of pitch
FORWARDS, UP = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
SPRAWLED = 0.5  # distances outwards and down of the foot of a leg that sprawls, over its straight length
FREE_JOINTS = 5  # a leg of as many joints can hold its foot level
STEPS, DAMPING, RESTING = 200, 1e-3, 0.02  # of the search: iterations, and pulls on joints
LEVEL = 0.2  # weight of a radian of the foot's tilt [m]
BIAS = 0.5  # bend at which the search begins [rad]
WORSE = 1e-3  # difference of the errors of two poses, above which the better one counts


Pose: TypeAlias = dict[str, Floats]  # positions by joint


def keyframes(scene: mujoco.MjModel) -> dict[str, Pose]:
  """Return the keyframes of a file by name, each as the positions of its joints by name."""
  return {
    scene.key(key).name or f"keyframe {key}": {
      scene.joint(joint).name: positions(scene, scene.key_qpos[key], joint) for joint in range(scene.njnt)
    }
    for key in range(scene.nkey)
  }


def positions(mj: mujoco.MjModel, qpos: Floats, joint: int) -> Floats:
  """Return the part of a configuration [nq] that a joint has, as a view."""
  start = mj.jnt_qposadr[joint]
  return qpos[start : start + WIDTHS[mjtJoint(mj.jnt_type[joint])]]


def home_of_file(skeleton: Skeleton, keys: dict[str, Pose], asked: str | None, path: str) -> str | None:
  """Take the pose of a keyframe: the one asked for, or the best one in which no trunk tilts or lies.

  Returns its name, or None if there is none. Raises ValueError if there is none of the name asked for.
  """
  if asked is not None:
    _take(skeleton, keys[known_name(asked, keys, "keyframe", "env.home", path)])
    return asked
  neutral = skeleton.data.qpos.copy()
  for name in sorted(keys, key=_rank):
    _take(skeleton, keys[name])
    placed = skeleton.data.xpos[skeleton.root][2] > 0 or min(skeleton.lowest().values(), default=0.0) > -DEEP
    if (skeleton.data.xmat[skeleton.root][8] > UPRIGHT and placed) or not skeleton.floats:
      return name
  skeleton.take(neutral)
  return None


def _rank(key: str) -> int:
  """Return the place of a keyframe's name among the preferred ones."""
  return next((place for place, word in enumerate(PREFERRED) if word in key.lower()), len(PREFERRED))


def _take(skeleton: Skeleton, pose: Pose) -> None:
  qpos = skeleton.data.qpos.copy()
  for joint in range(skeleton.mj.njnt):
    positions(skeleton.mj, qpos, joint)[:] = pose[skeleton.joint_name(joint)]
  skeleton.take(qpos)


def lies(skeleton: Skeleton, legs: list[Leg]) -> bool:
  """Return whether the hips are so low that the robot lies or squats."""
  straight = np.mean([_length(skeleton, leg, leg.joints, FORWARDS) for leg in legs])
  spread = np.mean([_length(skeleton, leg, leg.joints, _ahead(skeleton, leg)) for leg in legs])
  height = float(np.mean([skeleton.data.xanchor[leg.joints[0], 2] for leg in legs]))
  return bool(height < max(SQUAT * straight, PROSTRATE * spread))


def _length(skeleton: Skeleton, leg: Leg, joints: Sequence[int], ahead: Floats) -> float:
  """Return the length of a straight leg from the first of some joints to the middle of the foot [m].

  It is measured in the upright plane that contains the direction `ahead` [3].
  """
  points = [skeleton.data.xanchor[joint] for joint in joints]
  points.append(skeleton.data.geom_xpos[list(leg.geoms)].mean(0))
  plane = np.stack([ahead, UP])
  return float(sum(np.linalg.norm(plane @ (b - a)) for a, b in itertools.pairwise(points)))


def _ahead(skeleton: Skeleton, leg: Leg) -> Floats:
  """Return the level direction in which a leg bends [3]: outwards if it sprawls, else forwards."""
  along = skeleton.data.geom_xpos[list(leg.geoms)].mean(0) - skeleton.data.xanchor[leg.joints[0]]
  outwards = np.array([*along[:2], 0.0]) / max(np.hypot(*along[:2]), 1e-6)
  axes = np.array([skeleton.axis(joint) for joint in leg.joints])
  bending, usual = (np.square(axes @ np.cross(UP, way)).sum() for way in (outwards, FORWARDS))
  sprawls = np.hypot(*along[:2]) > abs(along[2]) and bending > usual
  return outwards if sprawls else FORWARDS


def bend(skeleton: Skeleton, legs: list[Leg]) -> None:
  """Bend the legs until the feet are below the hips, and the weight between the feet; stand on the floor.

  Of knees that can bend either way, two legs bend theirs forwards, more legs theirs backwards.
  """
  neutral = skeleton.data.qpos.copy()
  weight = float(skeleton.data.subtree_com[skeleton.root][0])  # before any leg bends, so both bend alike
  found = []
  for sign in (1.0, -1.0):
    skeleton.take(neutral)
    searches = [_Search(skeleton, leg, len(legs), sign, weight) for leg in legs]
    error = sum(search.run() for search in searches)
    found.append((error, sum(search.knee() for search in searches), skeleton.data.qpos.copy()))
  forwards = 1 if len(legs) == 2 else -1
  best = min(error for error, *_ in found) + WORSE
  _, _, qpos = min(found, key=lambda pose: (pose[0] > best, -forwards * pose[1]))
  skeleton.take(qpos)
  skeleton.ground()


class _Search:
  """Search of one leg's pose by damped least squares."""

  def __init__(self, skeleton: Skeleton, leg: Leg, legs: int, sign: float, weight: float) -> None:
    """Begin with a bent leg: its pitch joints turn by `sign` and back in turns.

    weight: x of the robot's centre of mass [m]. Of two legs, the feet are to be below it.
    """
    self.skeleton, self.leg = skeleton, leg
    data, mj = skeleton.data, skeleton.mj
    ahead = _ahead(skeleton, leg)
    self.sprawls = bool(abs(ahead[1]) > SPRAWLED)  # it stretches to its side
    across = {joint: float(np.cross(UP, ahead) @ skeleton.axis(joint)) for joint in leg.joints}
    self.pitch = [joint for joint in leg.joints if abs(across[joint]) > ACROSS and joint != leg.wheel]
    self.joints = [joint for joint in leg.joints if joint != leg.wheel]
    self.columns, self.dofs = mj.jnt_qposadr[self.joints], mj.jnt_dofadr[self.joints]
    self.rest = data.qpos[self.columns].copy()
    self.level = data.xmat[leg.body].reshape(3, 3).copy()  # axes of the foot, to be kept
    self.target = self._place().copy()
    if len(self.pitch) >= 2:
      hip = data.xanchor[self.pitch[0]].copy()
      straight = _length(skeleton, leg, self.pitch, ahead)
      self.target[0] = hip[0] if legs > 2 else weight
      self.target[2] = hip[2] - STRAIGHT.get(legs, BENT) * straight
      if self.sprawls and hip[2] - self._place()[2] > SPRAWLED / 2 * straight:
        self.pitch = []  # it stands as it is drawn
      elif self.sprawls:
        self.target = hip + straight * SPRAWLED * (ahead - UP)
      qpos = data.qpos.copy()
      for joint, turn in zip(self.pitch, (-1.0, 2.0, -1.0), strict=False):
        qpos[mj.jnt_qposadr[joint]] += sign * turn * BIAS * np.sign(across[joint])
      skeleton.take(skeleton.within(qpos))

  def run(self) -> float:
    """Search, and return the square of the remaining error."""
    data, mj = self.skeleton.data, self.skeleton.mj
    if len(self.pitch) < 2:
      return 0.0
    for _ in range(STEPS):
      error, jacobian = self._error()
      pull = RESTING * (self.rest - data.qpos[self.columns]) * ~np.isin(self.joints, self.pitch)
      normal = jacobian.T @ jacobian + DAMPING * np.eye(len(self.dofs))
      step = np.linalg.solve(normal, jacobian.T @ error + pull * DAMPING)
      qpos = data.qpos.copy()
      qpos[self.columns] += step.clip(-0.2, 0.2)
      qpos = self.skeleton.within(qpos)
      data.qpos[:] = qpos
      mujoco.mj_kinematics(mj, data)
      mujoco.mj_comPos(mj, data)
    return float(np.square(self._error()[0]).sum())

  def knee(self) -> float:
    """Return the distance [m] of the knee before the line from hip to foot; if it sprawls, below the foot."""
    if len(self.pitch) < 2:
      return 0.0
    hip, knee = (self.skeleton.data.xanchor[joint] for joint in self.pitch[:2])
    foot = self._place()
    if self.sprawls:
      return float(foot[2] - knee[2])
    along = (knee[2] - hip[2]) / min(foot[2] - hip[2], -1e-6)
    return float(knee[0] - hip[0] - along * (foot[0] - hip[0]))

  def _place(self) -> Floats:
    """Return the middle of the foot [3] [m]."""
    return self.skeleton.data.geom_xpos[list(self.leg.geoms)].mean(0)

  def _error(self) -> tuple[Floats, Floats]:
    """Return the error of the foot [n] and its Jacobian [n, joints]."""
    data, mj, body = self.skeleton.data, self.skeleton.mj, self.leg.body
    point, turn = np.zeros((3, mj.nv)), np.zeros((3, mj.nv))
    mujoco.mj_jac(mj, data, point, turn, self._place(), body)
    error, jacobian = [self.target - self._place()], [point[:, self.dofs]]
    if len(self.joints) >= FREE_JOINTS and self.leg.wheel < 0:
      now = data.xmat[body].reshape(3, 3)
      error.append(LEVEL / 2 * np.cross(now.T, self.level.T).sum(0))
      jacobian.append(LEVEL * turn[:, self.dofs])
    return np.concatenate(error), np.concatenate(jacobian)
