"""Reader of any robot: legs or an arm, as the file says."""

import logging

import mujoco
import numpy as np
from mujoco import mjtJoint

from physics.robot.arm import Arm
from physics.robot.description import Asked, Robot
from physics.robot.feet import NoLegs
from physics.robot.legged import LeggedRobot
from physics.robot.read_arm import read_arm
from physics.robot.read_legged import read_legged
from physics.robot.source import SCALAR, compiled, is_urdf, open_robot

LOG = logging.getLogger(__name__)


def read_robot(asked: Asked) -> tuple[LeggedRobot | Arm, mujoco.MjSpec]:
  """Return the description and the model of a robot with legs or of an arm.

  Legs carry a floating base. A URDF does not say whether its base floats: there, several chains of joints
  from the base are legs, and one is an arm. Raises FileNotFoundError and ValueError in one line.
  """
  if not has_legs(asked):
    return read_arm(asked)
  try:
    return read_legged(asked)
  except NoLegs as error:
    if not is_urdf(asked.path):
      raise
    raise NoLegs(f"{error}, or the tip of an arm as env.site") from error


def has_legs(asked: Asked) -> bool:
  """Return whether a file's robot has legs and not an arm alone."""
  if asked.site is not None:
    return False
  mj = compiled(open_robot(asked.path, []), asked.path)
  moving = mj.jnt_bodyid[np.isin(mj.jnt_type, SCALAR)]
  floating = mj.jnt_bodyid[mj.jnt_type == mjtJoint.mjJNT_FREE]
  if np.isin(mj.body_rootid[moving], mj.body_rootid[floating]).any():
    return True
  return is_urdf(asked.path) and int((mj.body_weldid[mj.body_parentid[moving]] == 0).sum()) > 1


def announce(robot: Robot, *lines: str) -> None:
  """Log what was found, and further lines."""
  for line in (*robot.summary().splitlines(), *lines):
    LOG.info(line)
