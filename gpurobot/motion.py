"""Motion files: python -m gpurobot.motion <clip or file> [robot=<robot file>] [key=value ...].

It prints the demands of a motion on a robot, and doubts about it. play=true shows it in the browser, beside
a robot with servos that follow it. out=<file>.npz writes it in a self-describing form.
"""

import dataclasses
import math
import sys
from pathlib import Path

import numpy as np

import physics
from gpurobot import extras
from gpurobot.run.output import aligned
from gpurobot.settings.config import ConfigError, option
from gpurobot.shell import cli
from physics.robot import LeggedRobot
from tasks.motion import settings
from tasks.motion.check import SHIFTS, check, clearance, ground, sunk
from tasks.motion.clip import Clip
from tasks.motion.read import write_npz
from tasks.shared import robot_file

PROGRAM = "python -m gpurobot.motion"
NEW_RATE = 50.0  # frames per second of our own clips


@dataclasses.dataclass
class Motion(settings.Config, robot_file.LegsConfig):
  """Motions, with the settings of the task `motion_track` that describe a file and its robot."""

  robot: str | None = option(None, "MJCF or URDF file of a robot with legs; null: the humanoid of assets/")
  motion: str = option("", f"clips, with commas between: {settings.CLIPS}")
  begin: float = option(0.0, "time in each motion at which to begin", "s", low=0)
  end: float | None = option(None, "time in each motion at which to end; null: its last frame", "s", low=0)
  scale: float = option(1.0, "factor of positions: 0.01 for centimetres", low=1e-6)
  degrees: bool = option(False, "joint angles in the file are degrees")
  raise_by: float = option(0.0, "height to add", "m")
  level: bool = option(
    False, "take out a steady rise or fall, and put the lower quarter of frames on the ground"
  )
  raise_sunk: bool = option(False, "raise frames that are under the ground, and smoothly those around them")
  reorder: settings.Quaternion = option(
    settings.Quaternion.file, "order of quaternions to read in the other one; file: none"
  )
  out: str | None = option(None, "file to write the motion to, .npz; null: none")
  out_fps: float | None = option(None, "frames per second of that file; null: the motion's", low=0.1)
  play: bool = option(False, "show the motion in the browser")
  host: str = option("localhost", "address to serve the page at; 0.0.0.0: reachable from other machines")
  port: int = option(8080, "port of the page; if it is taken, the next free one", low=1, high=65535)
  debug: bool = option(False, "show the traceback of an error")


def show(given: Motion) -> None:
  """Print the statistics of motions; write or play them as the settings ask."""
  if not given.motion:
    raise ConfigError(f"the motion is missing: write {PROGRAM} <file>, or one of {settings.OWN}")
  robot, scene = robot_file.legged(given, settings.HUMANOID)
  model = physics.load_model(scene)
  clips = [_converted(clip, given, model) for clip in settings.read(given, robot, model, 1.0 / NEW_RATE)]
  for clip in clips:
    print(table(clip, robot, model), flush=True)
    for found, doubtful in check(clip, model, robot).items():
      print(f"{'doubtful' if doubtful else 'good':9}{found}", flush=True)
  if given.out:
    _write(clips, given)
  if given.play:
    with extras.require_extra("viewer"):
      from gpurobot.viewer.motion_page import MotionPage  # noqa: PLC0415
    page = MotionPage(scene, model, clips, given.host, given.port)
    print(f"open {page.address}", flush=True)
    page.run()


def table(clip: Clip, robot: LeggedRobot, model: physics.Model) -> str:
  """Return statistics of a clip: its length, the root's path, and a line for each joint."""
  linear, angular, speeds = clip.velocities()
  lowest, heights = 1000 * clearance(clip, model), clip.root_pos[:, 2]
  path = np.linalg.norm(np.diff(clip.root_pos, axis=0), axis=1).sum()
  fastest = [np.linalg.norm(part, axis=1).max() for part in (linear, angular)]
  lines = [
    f"{clip.name}: {len(clip)} frames, {clip.seconds:.2f} s at {clip.fps:g} frames/s, on {robot.path}",
    f"root: path of {path:.2f} m, {heights.min():.2f} to {heights.max():.2f} m high",
    f"its speeds: at most {fastest[0]:.2f} m/s and {fastest[1]:.2f} rad/s",
    f"lowest point: {lowest.min():.1f} to {lowest.max():.1f} mm above the ground",
    "",
  ]
  ranges = model.jnt_range[[model.joint_id(name) for name in clip.joints]].tolist()
  columns = (clip.joints, clip.joint_pos.min(0), clip.joint_pos.max(0), ranges, np.abs(speeds).max(0))
  rows = [
    (name, f"{low:.2f}", f"{high:.2f}", f"{most[0]:.2f} to {most[1]:.2f}", f"{speed:.2f}")
    for name, low, high, most, speed in zip(*columns, strict=True)
  ]
  return "\n".join([*lines, *aligned([("joint", "lowest", "highest", "range", "top speed"), *rows]), ""])


def _converted(clip: Clip, given: Motion, model: physics.Model) -> Clip:
  """Return the part of a clip that the settings ask for, in SI units and at their height."""
  part = clip.part(given.begin, given.end)
  if len(part) < 2:
    raise ConfigError(
      f"{clip.name} has {clip.seconds:g} s, and {len(part)} frames between begin={given.begin:g} and "
      f"end={'null' if given.end is None else f'{given.end:g}'}: two or more make a motion"
    )
  part = part.scaled(given.scale, math.pi / 180 if given.degrees else 1.0)
  part = part.reordered(SHIFTS.get(given.reorder, 0))
  part = part.lifted(given.raise_by - (ground(clearance(part, model)) if given.level else 0.0))
  return part.lifted(sunk(clearance(part, model), part.fps)) if given.raise_sunk else part


def _write(clips: list[Clip], given: Motion) -> None:
  """Write the motion to the file `out`; raise ConfigError if there are several or it cannot be written."""
  path = Path(str(given.out))
  if path.suffix != ".npz":
    raise ConfigError(f"out={given.out}: write a name that ends with .npz")
  if len(clips) > 1:
    raise ConfigError(f"out={given.out} is one file for {len(clips)} motions: convert one at a time")
  clip = clips[0].resampled(given.out_fps) if given.out_fps else clips[0]
  try:
    write_npz(path, clip)
  except OSError as error:
    raise ConfigError(f"out={given.out} cannot be written: {error.strerror}") from error
  print(f"wrote {path}: {len(clip)} frames at {clip.fps:g} frames/s")


def main(argv: list[str]) -> None:
  """Show the motion that `argv` names; a word may be the clip alone, and keys may be the task's, env.*."""
  words = [word.removeprefix("env.") if "=" in word else word for word in argv]
  cli.start(Motion(), PROGRAM, words, show, named="motion")


if __name__ == "__main__":
  main(sys.argv[1:])
