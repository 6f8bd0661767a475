"""Description of a robot's file: python -m gpurobot.describe <robot file> [key=value ...].

It prints the parts that the task `walk` finds in a robot with legs, or the tasks `reach` and `lift` in an
arm, and doubts about them. picture=<file> draws the robot at home.
"""

import dataclasses
import sys

from gpurobot import extras
from gpurobot.run.output import aligned
from gpurobot.settings.config import ConfigError, option
from gpurobot.shell import cli
from physics.robot import Arm, Asked, LeggedRobot, read_arm, read_robot
from tasks.shared import robot_file

PROGRAM = "python -m gpurobot.describe"


@dataclasses.dataclass
class Description(robot_file.ArmConfig, robot_file.LegsConfig):
  """Description of a robot, with the settings of the tasks `walk` and `reach` that describe it."""

  robot: str | None = option(None, "MJCF or URDF file of a robot with legs, or of an arm")
  self_collision: bool = option(True, "let links collide with each other, as `walk` does by default")
  picture: str | None = option(None, "picture of the robot at home to write, .png; null: none")
  width: int = option(640, "width of the picture", "pixels", low=16, high=4096)
  height: int = option(480, "height of the picture", "pixels", low=16, high=4096)
  debug: bool = option(False, "show the traceback of an error")


def table(robot: LeggedRobot | Arm) -> str:
  """Return the description of a robot: a summary, its legs, and its joints with their servos."""
  lines = [robot.summary(), ""]
  columns = {
    name: [f"{number:.3g}" for number in values.round(9) + 0.0]
    for name, values in (
      ("home", robot.angles),
      ("stiffness", robot.stiffness),
      ("damping", robot.damping),
      ("torque", robot.effort),
    )
  }
  if isinstance(robot, LeggedRobot):
    lines += [f"leg of {foot}: {', '.join(leg)}" for foot, leg in zip(robot.feet, robot.legs, strict=True)]
    lines += [f"guarded: {', '.join(robot.guarded) or 'nothing else can touch the ground'}", ""]
    columns["in the mirror"] = _images(robot)
  else:
    columns["range"] = [f"{low:.3g} to {high:.3g}" for low, high in robot.limits.tolist()]
  rows = zip(robot.joints, *columns.values(), strict=True)
  return "\n".join([*lines, *aligned([("joint", *columns), *rows])])


def gripper(asked: Asked) -> str:
  """Return what the task `lift` finds in an arm's file, or why it cannot lift, in a line or two."""
  try:
    arm, _ = read_arm(dataclasses.replace(asked, grips=True))
  except ValueError as error:
    return f"cannot lift: {error}"
  return "\n".join(part.words() for part in (arm.gripper, arm.table) if part)


def _images(robot: LeggedRobot) -> list[str]:
  """Return the mirror image of each joint, with - where it turns the other way."""
  if not robot.mirrored:
    return ["-"] * len(robot.joints)
  pairs = zip(*robot.mirrored, strict=True)
  return [f"{'-' if sign < 0 else ''}{robot.joints[partner]}" for partner, sign in pairs]


def show(settings: Description) -> None:
  """Print the description and draw the picture that the settings ask for."""
  if settings.robot is None:
    raise ConfigError(f"the robot is missing: write {PROGRAM} <robot file>")
  robot, scene = read_robot(robot_file.asked(settings))
  print(table(robot))
  if isinstance(robot, Arm):
    print(gripper(robot_file.asked(settings)))
  if settings.picture:
    with extras.require_extra("viewer"):
      from gpurobot.viewer.home_picture import draw  # noqa: PLC0415

      draw(scene, settings.picture, settings.width, settings.height)
    print(f"wrote {settings.picture}")


def main(argv: list[str]) -> None:
  """Describe the robot that `argv` names; a word may be the file alone."""
  cli.start(Description(), PROGRAM, argv, show, named="robot")


if __name__ == "__main__":
  main(sys.argv[1:])
