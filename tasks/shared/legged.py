"""Legged robots of any file, as the settings of a task ask for them."""

from typing import Any

from physics.robot import Asked, LeggedRobot, announce, read_robot
from tasks.base import ASSETS
from tasks.core.errors import SettingError

__all__ = ["LeggedRobot", "announce", "read"]


def read(config: Any) -> tuple[LeggedRobot, Any]:
  """Return the robot that the settings of the task `walk` describe, and its model, an MjSpec.

  Raises SettingError for a file that does not exist or has no robot that can walk.
  """
  asked = Asked(
    path=config.robot or str(ASSETS / "quadruped" / "robot.xml"),
    trunk=config.trunk,
    feet=tuple(config.feet),
    joints=tuple(config.joints),
    home=config.home,
    stiffness=config.stiffness,
    damping=config.damping,
    self_collision=config.self_collision,
    timestep=config.control_seconds / config.substeps,
  )
  try:
    return read_robot(asked)
  except (OSError, ValueError) as error:
    raise SettingError(" ".join(str(error).split())) from error
