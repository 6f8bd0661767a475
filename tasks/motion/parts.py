"""Parts of a robot that a task of motion tracking compares with the motion."""

from typing import Any, NamedTuple

from physics.robot import LeggedRobot
from tasks.core.errors import SettingError
from tasks.core.names import hint


class Parts(NamedTuple):
  """Ids of bodies."""

  anchor: int  # body: its pose is compared in the world
  bodies: list[int]  # compared beside the anchor
  ends: list[int]  # indices in `bodies`: their height ends an episode


def find(config: Any, robot: LeggedRobot, model: Any) -> Parts:
  """Return the parts that the settings `anchor`, `bodies` and `ends` name, or that follow from the robot.

  By default the anchor is the trunk, the bodies are all that can touch something, and the ends are the ones
  of them that carry no other. Raises SettingError for unknown names.
  """
  if robot.wheels:
    wheel = robot.wheels[0].joint
    raise SettingError(f"{robot.path}: '{wheel}' turns a wheel, which no motion does: leave it out of joints")
  known, touching = model.body_names, {robot.trunk, *robot.guarded, *robot.feet_bodies}
  anchor = _ids("anchor", [config.anchor or robot.trunk], known, robot.path)[0]
  names = config.bodies or [name for name in known if name in touching]
  bodies = _ids("bodies", names, known, robot.path)
  carrying = {*model.body_parentid[bodies].tolist()}
  last = [name for name, body in zip(names, bodies, strict=True) if body not in carrying]
  return Parts(anchor, bodies, _ids("ends", config.ends or last, names, robot.path))


def _ids(setting: str, names: list[str], known: Any, path: str) -> list[int]:
  """Return the places of names among those that are known; raise SettingError if one is not."""
  unknown = next((name for name in names if name not in known), None)
  if unknown is not None:
    kind = "tracked body" if setting == "ends" else "body"
    raise SettingError(f"env.{setting}: {path} has no {kind} '{unknown}', {hint(unknown, known)}")
  return [list(known).index(name) for name in names]
