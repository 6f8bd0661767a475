"""Description of a legged robot's file: python -m gpurobot.describe <robot file> [key=value ...].

It prints what the task `walk` finds in the file, and what is doubtful. picture=<file> draws the robot at
home.
"""

import dataclasses
import sys

from gpurobot import cli, extras
from gpurobot.config import ConfigError, option
from gpurobot.run.output import aligned
from physics.robot import Asked, LeggedRobot, read_robot

PROGRAM = "python -m gpurobot.describe"


@dataclasses.dataclass
class Description:
  """Description of a legged robot."""

  robot: str | None = option(None, "MJCF or URDF file of a robot with legs")
  trunk: str | None = option(None, "body whose contact is a fall; null: that of the free joint")
  feet: list[str] = option([], "bodies, geoms or sites that are feet; []: what touches the ground at home")
  joints: list[str] = option([], "joints that move; []: all with an actuator")
  home: str | None = option(None, "keyframe of the home pose; null: the file's, or bent legs")
  picture: str | None = option(None, "picture of the robot at home to write, .png; null: none")
  width: int = option(640, "width of the picture", "pixels", low=16, high=4096)
  height: int = option(480, "height of the picture", "pixels", low=16, high=4096)
  debug: bool = option(False, "show the traceback of an error")


def table(robot: LeggedRobot) -> str:
  """Return the legs, the joints with their servos and mirror images, and what else is known of a robot."""
  lines = [robot.summary(), ""]
  lines += [f"leg of {foot}: {', '.join(leg)}" for foot, leg in zip(robot.feet, robot.legs, strict=True)]
  lines += [f"guarded: {', '.join(robot.guarded) or 'nothing else can touch the ground'}", ""]
  rows: list[tuple[str, ...]] = [("joint", "home", "stiffness", "damping", "torque", "in the mirror")]
  for index, joint in enumerate(robot.joints):
    image = "-"
    if robot.mirrored:
      partner, sign = robot.mirrored[0][index], robot.mirrored[1][index]
      image = f"{'-' if sign < 0 else ''}{robot.joints[partner]}"
    numbers = robot.stance[index], robot.stiffness[index], robot.damping[index], robot.effort[index]
    rows.append((joint, *(f"{number:.3g}" for number in numbers), image))
  return "\n".join([*lines, *aligned(rows)])


def show(settings: Description) -> None:
  """Print the description and draw the picture that the settings ask for."""
  if settings.robot is None:
    raise ConfigError(f"the robot is missing: write {PROGRAM} <robot file>")
  robot, scene = read_robot(
    Asked(settings.robot, settings.trunk, tuple(settings.feet), tuple(settings.joints), settings.home)
  )
  print(table(robot))
  if settings.picture:
    with extras.require_extra("viewer"):
      from gpurobot.viewer.portrait import draw  # noqa: PLC0415

      draw(scene, settings.picture, settings.width, settings.height)
    print(f"wrote {settings.picture}")


def main(argv: list[str]) -> None:
  """Describe the robot that `argv` names; its first word may be the file alone."""
  first, rest = argv[:1], argv[1:]
  named = [word if "=" in word or word.startswith("-") else f"robot={word}" for word in first]
  cli.start(Description(), PROGRAM, [*named, *rest], show)


if __name__ == "__main__":
  main(sys.argv[1:])
