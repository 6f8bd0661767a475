"""Robots of any file, as the settings of a task ask for them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from physics.robot import Arm, Asked, LeggedRobot, Robot, announce, read_arm, read_legged
from physics.robot.gripper import GRASP, GRIPS, Gripper
from physics.robot.own_file import read_own_file
from physics.robot.table import Table, put_cube
from tasks.base import ASSETS, option
from tasks.core.errors import SettingError

__all__ = ["GRASP", "GRIPS", "Arm", "LeggedRobot", "announce", "arm", "asked", "legged", "lifter", "own_file"]
R = TypeVar("R", bound=Robot)


@dataclass
class Config:
  """Settings of a robot of any kind."""

  robot: str | None = option(None, "MJCF or URDF file of the robot; null: one of assets/")
  joints: list[str] = option(
    [], "joints that move, the others stay at home; []: all with an actuator, of an arm those before its tip"
  )
  home: str | None = option(None, "keyframe of the home pose; null: the file's, or one that is worked out")
  stiffness: float | None = option(
    None, "stiffness of all servos; null: the file's, or from weight and torque", "N m/rad", low=0.01
  )
  damping: float | None = option(None, "damping of all servos; null: the file's", "N m s/rad", low=0)
  self_collision: bool = option(False, "let links collide with each other, where the file does")
  control_seconds: float = option(0.02, "duration of a control step", "s", low=0.001, high=0.1)
  substeps: int = option(4, "number of physics steps per control step", low=1)


@dataclass
class LegsConfig(Config):
  """Settings of a robot with legs."""

  trunk: str | None = option(None, "body: its contact is a fall; null: the free joint's")
  feet: list[str] = option([], "bodies, geoms or sites that are feet; []: what touches the ground at home")


@dataclass
class ArmConfig(Config):
  """Settings of an arm."""

  site: str | None = option(
    None, "site or body that reaches; null: a site or body at the end by its name, or the last link"
  )


def asked(config: Any, default: str = "") -> Asked:
  """Return what settings ask for; `default` is the file of a robot that they do not name."""
  return Asked(
    path=config.robot or default,
    joints=tuple(config.joints),
    home=config.home,
    stiffness=config.stiffness,
    damping=config.damping,
    self_collision=config.self_collision,
    timestep=config.control_seconds / config.substeps,
    trunk=getattr(config, "trunk", None),
    feet=tuple(getattr(config, "feet", ())),
    site=getattr(config, "site", None),
    grips=hasattr(config, "cube_size"),
    cube_size=getattr(config, "cube_size", None),
  )


def legged(config: Any, default: Path = ASSETS / "quadruped" / "robot.xml") -> tuple[LeggedRobot, Any]:
  """Return the robot with legs that settings describe, and its model, an MjSpec; `default` if they name none.

  Raises SettingError for a file that does not exist or has no robot that can walk as it is commanded.
  """
  found = _read(read_legged, asked(config, str(default)))
  if len(found[0].wheels) == len(found[0].joints) and (sideways := getattr(config, "command_sideways", None)):
    raise SettingError(f"env.command_sideways={sideways:g}: its wheels only roll ahead; leave it out")
  return found


def arm(config: Any) -> tuple[Arm, Any]:
  """Return the arm that the settings of the task `reach` describe, and its model, an MjSpec.

  Raises SettingError for a file that does not exist or has no arm.
  """
  return _read(read_arm, asked(config, str(ASSETS / "arm" / "robot.xml")))


def lifter(config: Any) -> tuple[Arm, Gripper, Table, Any]:
  """Return the arm of the task `lift`, its gripper, where its cube is, and the model with it, an MjSpec.

  Raises SettingError for a file that does not exist, has no arm or no gripper, or cannot grasp the cube.
  """
  found, spec = _read(read_arm, asked(config, str(ASSETS / "arm" / "robot.xml")))
  assert found.gripper is not None
  assert found.table is not None
  return found, found.gripper, found.table, put_cube(spec, found.gripper, found.table)


def own_file(config: Any, scene: Any = None) -> Any:
  """Return the file of the robot with legs that settings name, as it stands, with training's sensors.

  scene: the training's, an MjSpec; None: on flat ground. Raises SettingError if MuJoCo refuses the file.
  """
  robot, flat = legged(config)
  try:
    return read_own_file(robot, scene or flat)
  except (OSError, ValueError) as error:
    raise SettingError(" ".join(str(error).split())) from error


def targets(arm: Arm, low: list[float], high: list[float]) -> tuple[Any, Any]:
  """Return the positions [n, 3] [m] that an arm can reach inside a box, given by its corners.

  They come with the orientations that the tip can have there [n, 3, 3]. An empty corner is no limit. Raises
  SettingError if no position is left.
  """
  places, turns = arm.targets, arm.turns
  for name, limit, sign in (("target_low", low, 1.0), ("target_high", high, -1.0)):
    if limit and len(limit) != 3:
      raise SettingError(f"env.{name} has {len(limit)} numbers: write x, y and z, as in [0.2,-0.3,0.1]")
    if limit:
      inside = (sign * (places - limit) >= 0).all(1)
      places, turns = places[inside], turns[inside]
  if not len(places):
    reached = [corner.round(2).tolist() for corner in (arm.targets.min(0), arm.targets.max(0))]
    raise SettingError(
      f"nothing between env.target_low and env.target_high is reached: the arm reaches {reached[0]} to "
      f"{reached[1]} m"
    )
  return places, turns


def _read(read: Callable[[Asked], tuple[R, Any]], given: Asked) -> tuple[R, Any]:
  try:
    return read(given)
  except (OSError, ValueError) as error:
    raise SettingError(" ".join(str(error).split())) from error
