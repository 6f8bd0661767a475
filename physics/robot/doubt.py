"""Doubts about a robot: what can be wrong with its frame, its servos and its home pose."""

from __future__ import annotations

import mujoco
import numpy as np

from physics.robot.skeleton import Skeleton

SECONDS = 1.0  # for which a robot of more than two legs should stand at home [s]
STANDS = 0.8  # cosine of the tilt, and share of the height, above which it does
FAST = 0.5  # square of the time step over a servo's period / 2 pi, above which it may shake


def doubt_frame(skeleton: Skeleton, doubts: list[str]) -> None:
  """Doubt a trunk whose z axis does not point up, or whose joints lie along its y axis."""
  if skeleton.data.xmat[skeleton.root][8] < 0.9:
    doubts.append("the z axis of the trunk does not point up at home, as walking asks for")
  places = np.array([skeleton.anchor(joint) for joint in skeleton.joints])
  length, width = np.ptp(places[:, :2], axis=0)
  if width > 2 * length and len(skeleton.joints) > 6 and np.abs(places[:, 0].mean()) > width / 4:
    doubts.append("the robot is wider than long: its x axis should point forwards")


def doubt_dynamics(mj: mujoco.MjModel, legs: int, doubts: list[str]) -> None:
  """Doubt servos that are too stiff for the time step, and a home pose in which the robot does not stand."""
  data = mujoco.MjData(mj)
  mujoco.mj_resetDataKeyframe(mj, data, 0)
  mujoco.mj_forward(mj, data)
  dofs = mj.jnt_dofadr[mj.actuator_trnid[:, 0]]
  inverse = np.zeros((mj.nv, mj.nv))
  mujoco.mj_solveM(mj, data, inverse, np.eye(mj.nv))
  speed = mj.actuator_gainprm[:, 0] * np.diag(inverse)[dofs] * mj.opt.timestep**2
  if speed.max() > FAST:
    stiff = mj.actuator(int(speed.argmax())).name
    doubts.append(
      f"the servo of '{stiff}' is stiff for a time step of {mj.opt.timestep:g} s: add env.substeps=8"
    )
  height = data.qpos[2]
  for _ in range(round(SECONDS / mj.opt.timestep)):
    mujoco.mj_step(mj, data)
  if legs > 2 and not (data.xmat[1][8] > STANDS and data.qpos[2] > STANDS * height):
    doubts.append("at home it falls within a second: give a pose in which it stands as a keyframe")
