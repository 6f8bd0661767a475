"""Run of an exported policy on a robot: python -m gpurobot.robot.run export=<folder> [key=value ...].

The robot is simulated by MuJoCo in another process, one of Unitree's, or one of ROS 2. It moves from its
present pose to home, follows the policy until the time is over, a key is pressed or a limit is broken, and
then brakes its joints. Every control step is recorded in a .npz file.
"""

import dataclasses
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch

from gpurobot.robot import keyboard
from gpurobot.robot.controller import Controller
from gpurobot.robot.gamepad import HELP as PAD_HELP
from gpurobot.robot.gamepad import Gamepad
from gpurobot.robot.interface import Robot
from gpurobot.robot.keyboard import Commands
from gpurobot.robot.loop import Loop, Times
from gpurobot.robot.ros2 import Ros2, Ros2Robot
from gpurobot.robot.safety import Safety
from gpurobot.robot.udp import SimulatedProcess, Simulation, UdpRobot
from gpurobot.robot.unitree import PROGRAM as UNITREE
from gpurobot.robot.unitree import Unitree, UnitreeRobot
from gpurobot.settings.config import ConfigError, option
from gpurobot.shell import cli

PROGRAM = "python -m gpurobot.robot.run"
PLANNED = ("its time was over", "a key was pressed", "a button was pressed", "Ctrl-C was pressed")


class Backend(StrEnum):
  """Robot, and the way to speak with it."""

  mujoco = "mujoco"
  unitree = "unitree"
  ros2 = "ros2"


@dataclasses.dataclass
class RunSettings(Times):
  """Run of an exported policy on a robot."""

  export: str | None = option(None, "folder that gpurobot export has written")
  robot: Backend = option(Backend.mujoco, "mujoco: simulated, in a process; unitree: Go2, G1; ros2: topics")
  command: list[float] = option([], "first command, as policy.json lists commands; []: zeros")
  gamepad: str | None = option(None, "device of a gamepad for commands and stop, as /dev/input/js0")
  log: str | None = option(None, ".npz file of all control steps; null: a new one in <export>/logs")
  safety: Safety = dataclasses.field(default_factory=Safety)
  sim: Simulation = dataclasses.field(default_factory=Simulation)
  unitree: Unitree = dataclasses.field(default_factory=Unitree)
  ros2: Ros2 = dataclasses.field(default_factory=Ros2)
  debug: bool = option(False, "show the traceback of an error")


def run(settings: RunSettings) -> None:
  """Run a policy on a robot and write the log; exit with status 1 if the watchdog ended the run."""
  if settings.export is None:
    raise ConfigError("export=<folder> is missing: name a folder that gpurobot export has written")
  folder = Path(settings.export)
  torch.set_num_threads(1)  # a small network, and a deadline
  controller = Controller(folder)
  commands = _commands(controller, settings.command)
  log = Path(settings.log or folder / "logs" / f"{time.strftime('%Y%m%d-%H%M%S')}.npz")
  if log.suffix != ".npz":
    raise ConfigError(f"log={log}: the log is a file with the ending .npz")
  pad = Gamepad(settings.gamepad, commands) if settings.gamepad else None
  robot = connect(settings, folder, controller, commands)
  reason = "an error"
  try:
    loop = Loop(robot, controller, settings.safety, commands)
    with keyboard.listening() as keys:
      for text in [keyboard.HELP] * keys + [PAD_HELP] * bool(pad):
        print(text)
      try:
        reason = loop.run(settings, lambda: _pressed(keys, pad))
      finally:
        loop.write(log, reason)
  finally:
    last = robot.close()
    if last and reason == "an error":
      print(last)
  lines = [f"the run ended: {reason}", loop.jitter(), last, f"{log}: the log"]
  print("\n".join(filter(None, lines)))
  if reason not in PLANNED:
    raise SystemExit(1)


def _pressed(keys: bool, pad: Gamepad | None) -> str:
  """Return the keys that were pressed, after the gamepad has commanded."""
  if pad:
    pad.poll()
  return keyboard.pressed() if keys else ""


def connect(settings: RunSettings, folder: Path, controller: Controller, commands: Commands) -> Robot:
  """Return the robot that the settings name."""
  if settings.robot is Backend.ros2:
    return Ros2Robot(settings.ros2, controller.servos.joints, commands)
  pose = controller.facts["key_frames"]["home"]["qpos"]
  joints = controller.facts["joints"]
  free = next(joint["qpos"] for joint in joints if joint["type"] == "free")
  home = {joint["name"]: pose[joint["qpos"]] for joint in joints if joint["type"] in ("hinge", "slide")}
  model = Path(settings.sim.model or folder / "robot.xml")
  given = {"home": home, "root": pose[free : free + 7], "start_seconds": settings.start_seconds}
  if settings.robot is Backend.unitree:
    if not settings.sim.realtime:
      raise ConfigError("sim.realtime=false: only robot=mujoco has simulated time")
    return UnitreeRobot(
      settings.unitree, home, lambda more: SimulatedProcess(settings.sim, model, {**given, **more}, UNITREE)
    )
  return UdpRobot(settings.sim, model, given)


def _commands(controller: Controller, first: list[float]) -> Commands:
  """Return the commands, which begin with `first`; raise ConfigError if they are too many or too few."""
  ranges: list[dict[str, Any]] = controller.facts["commands"]
  if first and len(first) != len(ranges):
    names = ", ".join(known["name"] for known in ranges)
    raise ConfigError(f"command={first} has {len(first)} numbers, not {len(ranges)}: {names}")
  for value, known in zip(first, ranges, strict=False):
    low, high = known["range"]
    if not low <= value <= high:
      raise ConfigError(f"command={first}: {known['name']} is from {low:g} to {high:g} in the training")
  return Commands(ranges, first)


def main(argv: list[str]) -> None:
  """Run a policy with the settings in `argv`; a word may be the export's folder."""
  cli.start(RunSettings(), PROGRAM, argv, run, named="export")


if __name__ == "__main__":
  main(sys.argv[1:])
