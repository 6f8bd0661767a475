"""Motions as the settings of a task ask for them: names of our own clips, and files."""

import dataclasses
import warnings
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from physics.robot import LeggedRobot
from tasks.base import ASSETS, option
from tasks.core.errors import SettingError
from tasks.core.names import hint
from tasks.motion.bvh import read_bvh
from tasks.motion.check import check
from tasks.motion.clip import Clip
from tasks.motion.generated_clips import make
from tasks.motion.plan import PLANS
from tasks.motion.read import ENDINGS, Reading, check_consistent, read_file
from tasks.motion.walk import steady_walk
from tasks.shared import robot_file

HUMANOID = ASSETS / "humanoid" / "servos.xml"  # the robot, if the settings name none
STEADY_WALK = "steady_walk"  # of that robot alone
NAMES = (*PLANS, STEADY_WALK)
OWN = ", ".join(NAMES)
CLIPS = f"{OWN}, or a {ENDINGS} file"  # what a clip can be


class Quaternion(StrEnum):
  """Order of the numbers of a file's quaternions."""

  file = "file"
  wxyz = "wxyz"
  xyzw = "xyzw"


@dataclass
class Config:
  """Settings of motions."""

  motion: str = option("walk", f"clips, with commas between: {CLIPS}")
  motion_weights: list[float] = option(
    [], "relative frequency with which each clip is drawn; []: alike", low=0.001
  )
  motion_mirrored: bool = option(False, "add the mirror image of each clip")
  motion_quaternion: Quaternion = option(
    Quaternion.file, "order of quaternions in files: wxyz, xyzw, or file: the file says it"
  )
  motion_fps: float | None = option(None, "frames per second of files; null: they say it", "1/s", low=0.1)
  motion_joints: list[str] = option(
    [], "joints in the order of a file's columns; []: its header's, or the robot's in its order"
  )
  motion_doubts: bool = option(True, "warn of clips that float, drift or go backwards; false: it is meant")


def weights(config: Any) -> dict[str, float]:
  """Return the relative frequencies of the clips that settings name; raise SettingError in one line."""
  names = [name.strip() for name in config.motion.split(",") if name.strip()]
  given = config.motion_weights or [1.0] * len(names)
  if not names:
    raise SettingError(f"env.motion={config.motion} names no clip: write {OWN}, or a file")
  if len(given) != len(names):
    raise SettingError(
      f"env.motion_weights has {len(given)} numbers for {len(names)} clips: write one for each, or [] "
      "where all are drawn alike"
    )
  twice = next((name for name in names if names.count(name) > 1), None)
  if twice is not None:
    raise SettingError(f"env.motion names '{twice}' twice: name it once, and let env.motion_weights weigh it")
  return dict(zip(names, given, strict=True))


def read(config: Any, robot: LeggedRobot, model: Any, dt: float) -> list[Clip]:
  """Return the clips that settings of `Config` and `robot_file.LegsConfig` name, unchecked.

  Our own clips have a frame for each control step of `dt` [s]. Raises SettingError in one line.
  """
  clips = [
    dataclasses.replace(_clip(name, config, robot, model, dt), weight=weight)
    for name, weight in weights(config).items()
  ]
  return clips + [_mirror(clip, robot) for clip in clips] if config.motion_mirrored else clips


def load(config: Any, robot: LeggedRobot, model: Any, dt: float) -> list[Clip]:
  """Return the clips that settings name, as `read` does, checked against the robot's model."""
  clips = read(config, robot, model, dt)
  for clip in clips:
    for found, doubtful in check(clip, model, robot).items():
      if doubtful and config.motion_doubts:
        warnings.warn(f"{clip.name}: {found}; if it is meant, env.motion_doubts=false", stacklevel=2)
  return clips


def _mirror(clip: Clip, robot: LeggedRobot) -> Clip:
  """Return the mirror image of a clip; raise SettingError if left and right of the robot are not alike."""
  if robot.mirrored is None:
    raise SettingError(f"{robot.path} has no mirror symmetry: leave env.motion_mirrored out")
  return clip.mirrored(*robot.mirrored)


def _clip(name: str, config: Any, robot: LeggedRobot, model: Any, dt: float) -> Clip:
  asked = robot_file.asked(config, robot.path)
  if name in PLANS:
    return make(name, asked, 1.0 / dt)
  if name == STEADY_WALK:
    return steady_walk(asked, 1.0 / dt)
  path = Path(name)
  if not path.suffix:
    raise SettingError(f"env.motion={name} is no clip of our own, {hint(name, NAMES)}, and no file")
  if path.suffix.lower() == ".bvh":
    clip = read_bvh(path, robot, model)
    check_consistent(path, "frames per second", "motion_fps", round(clip.fps, 2), config.motion_fps)
    return clip
  order = None if config.motion_quaternion == Quaternion.file else config.motion_quaternion
  named, home = tuple(config.motion_joints), tuple(robot.angles.tolist())
  return read_file(path, Reading(robot.joints, order, config.motion_fps, named, home))
