"""Programs of gpurobot by name, as the command `gpurobot` runs them."""

from typing import NamedTuple

ALL_HELP = "--help=all"  # of a training: every key
HELP = ("--help", "-h", ALL_HELP)


class Program(NamedTuple):
  """Program of gpurobot."""

  module: str
  meaning: str
  settings: str = ""  # the class of its settings in the module, if that is all it takes


PROGRAMS = {
  "train": Program("train", "train a policy"),
  "demo": Program("gpurobot.demo", "watch a policy that comes with gpurobot"),
  "play": Program("gpurobot.play", "watch a policy in the browser: push it, command it, pause", "Play"),
  "record": Program("gpurobot.record", "record a video of a policy", "Recording"),
  "evaluate": Program("gpurobot.evaluate", "measure a policy, here or in MuJoCo C", "EvaluationSettings"),
  "export": Program("gpurobot.export", "write a policy as ONNX, TorchScript and C++", "Export"),
  "check": Program("gpurobot.check", "name what differs from training in a robot's log", "Check"),
  "run": Program("gpurobot.robot.run", "run an exported policy on a robot", "RunSettings"),
  "plot": Program("gpurobot.plot", "draw learning curves", "Plot"),
  "sweep": Program("gpurobot.sweep", "train with several seeds and settings", "Sweep"),
  "replay": Program("gpurobot.replay", "show how an environment diverged in training", "Replay"),
  "describe": Program(
    "gpurobot.describe",
    "describe the robot of a file, before it learns to walk, to reach or to lift",
    "Description",
  ),
  "motion": Program("gpurobot.motion", "describe a motion file, play it, convert it", "Motion"),
  "tasks": Program("gpurobot.tasks", "name the tasks, describe one, start a new one"),
  "doctor": Program("gpurobot.doctor", "check the installation", "Doctor"),
  "completion": Program("gpurobot.shell.completion", "complete this command in a shell"),
}
