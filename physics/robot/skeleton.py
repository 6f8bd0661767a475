"""Kinematic tree of a robot at a pose: chains of bodies, joint anchors and axes, lowest points."""

import functools

import mujoco
import numpy as np

from physics.model.model import Floats
from physics.robot.source import FLOOR, SCALAR

FAR = 100.0  # beyond which no distance is measured [m]
LEVEL = 0.3  # sine of a wheel's axis to the ground
TURNS, ROUND = 7, 0.05  # places at which a wheel is measured; largest difference of its radii, over these


class Skeleton:
  """A robot in one pose, on the floor if its base floats; its servos move `joints`."""

  def __init__(self, mj: mujoco.MjModel, root: int, joints: list[int]) -> None:
    """Take the pose of the model's reference, with every joint within its limits."""
    self.mj, self.root = mj, root
    self.floats = bool((mj.jnt_type[mj.jnt_bodyid == root] == mujoco.mjtJoint.mjJNT_FREE).any())
    self.data = mujoco.MjData(mj)
    tree = [body for body in range(1, mj.nbody) if mj.body_rootid[body] == mj.body_rootid[root]]
    self.bodies = tree
    solid = (mj.geom_contype | mj.geom_conaffinity) > 0
    self.shapes = [geom for geom in range(mj.ngeom) if solid[geom] and mj.geom_bodyid[geom] in tree]
    self.move(joints)
    self.relax()

  def move(self, joints: list[int]) -> None:
    """Set which joints are moved."""
    self.joints, self.columns = joints, self.mj.jnt_qposadr[joints]

  def relax(self) -> None:
    """Take the reference pose of the file, with every joint within its limits; stand on the floor."""
    self.take(self.within(self.mj.qpos0))
    self.ground()

  def take(self, qpos: Floats) -> None:
    """Take a pose [nq]."""
    self.data.qpos[:] = qpos
    mujoco.mj_forward(self.mj, self.data)

  def within(self, qpos: Floats) -> Floats:
    """Return a pose [nq] with every joint within its limits."""
    inside = qpos.copy()
    for joint in np.flatnonzero(self.mj.jnt_limited * np.isin(self.mj.jnt_type, SCALAR)):
      column = self.mj.jnt_qposadr[joint]
      inside[column] = np.clip(inside[column], *self.mj.jnt_range[joint])
    return inside

  def heights(self) -> dict[int, float]:
    """Return the height [m] of the lowest point of each shape that collides, by geom."""
    floor = self.mj.geom(FLOOR).id
    distance = functools.partial(mujoco.mj_geomDistance, self.mj, self.data, floor)
    return {geom: self.data.geom_xpos[floor, 2] + distance(geom, FAR, None) for geom in self.shapes}

  def lowest(self) -> dict[int, float]:
    """Return the height [m] of the lowest point of each body with a shape that collides."""
    falling = sorted(self.heights().items(), key=lambda item: -item[1])
    return dict(sorted({int(self.mj.geom_bodyid[geom]): height for geom, height in falling}.items()))

  def ground(self) -> None:
    """Lift or lower a robot that floats until its lowest point is on the floor."""
    if not self.floats:
      return
    qpos = self.data.qpos.copy()
    qpos[2] -= min(self.heights().values(), default=0.0)
    self.take(qpos)

  def chain(self, body: int) -> list[int]:
    """Return the bodies from the root to a body."""
    found = [body]
    while found[0] != self.root and found[0]:
      found.insert(0, int(self.mj.body_parentid[found[0]]))
    return found

  def drive(self, body: int) -> list[int]:
    """Return the moved joints between the root and a body, in that order."""
    moved = sorted(self.joints)
    return [joint for one in self.chain(body) for joint in moved if self.mj.jnt_bodyid[joint] == one]

  def start(self, body: int) -> float:
    """Return the height of the joint where the limb of a body begins [m]; 0.0 if no joint moves it."""
    return next((float(self.data.xanchor[joint, 2]) for joint in self.drive(body)), 0.0)

  def wheel(self, body: int) -> int:
    """Return the joint of the wheel that a body is or belongs to; -1: none.

    It is level, without limits, and the body's lowest point stays where it is as the joint turns.
    """
    hinges = self.mj.jnt_type == mujoco.mjtJoint.mjJNT_HINGE
    free = hinges & (self.mj.jnt_limited == 0) & np.isin(self.mj.jnt_bodyid, self.chain(body)[1:])
    level = free & (abs(self.data.xaxis[:, 2]) < LEVEL)
    return next((joint for joint in np.flatnonzero(level).tolist() if self._rolls(joint, body)), -1)

  def _rolls(self, joint: int, body: int) -> bool:
    """Return whether a body has one radius around a joint's axis."""
    pose, radii = self.data.qpos.copy(), []
    for turn in range(TURNS):
      turned = pose.copy()
      turned[self.mj.jnt_qposadr[joint]] += 2 * np.pi * turn / TURNS
      self.take(turned)
      radii.append(self.data.xanchor[joint, 2] - self.lowest()[body])
    self.take(pose)
    return bool(np.ptp(radii) < ROUND * min(radii))

  def anchor(self, joint: int) -> Floats:
    """Return the anchor of a joint in the frame of the root [3] [m]."""
    return self.to_root(self.data.xanchor[joint])

  def axis(self, joint: int) -> Floats:
    """Return the axis of a joint in the frame of the root [3]."""
    return self.data.xmat[self.root].reshape(3, 3).T @ self.data.xaxis[joint]

  def to_root(self, point: Floats) -> Floats:
    """Return a point of the world [3] [m] in the frame of the root."""
    return self.data.xmat[self.root].reshape(3, 3).T @ (point - self.data.xpos[self.root])

  def body_name(self, body: int) -> str:
    """Return the name of a body."""
    return str(self.mj.body(body).name)

  def joint_name(self, joint: int) -> str:
    """Return the name of a joint."""
    return str(self.mj.joint(joint).name)
