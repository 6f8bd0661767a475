"""Command `gpurobot`: `gpurobot train task=cartpole` runs the program `train` with the words after it."""

import importlib
import sys
from typing import NoReturn

from gpurobot import own_packages

# Module and meaning of each program.
PROGRAMS = {
  "train": ("train", "train a policy"),
  "demo": ("gpurobot.demo", "watch a policy that comes with gpurobot"),
  "play": ("gpurobot.play", "watch a policy in the browser: push it, command it, pause"),
  "record": ("gpurobot.record", "record a video of a policy"),
  "evaluate": ("gpurobot.evaluate", "measure a policy, here or in MuJoCo C"),
  "export": ("gpurobot.export", "write a policy as ONNX and TorchScript"),
  "plot": ("gpurobot.plot", "draw learning curves"),
  "sweep": ("gpurobot.sweep", "train with several seeds and settings"),
  "replay": ("gpurobot.replay", "show how an environment diverged in training"),
  "describe": ("gpurobot.describe", "tell what a robot's file holds, before it learns to walk or to reach"),
  "motion": ("gpurobot.motion", "tell what a motion file holds, play it, convert it"),
  "tasks": ("gpurobot.tasks", "name the tasks, describe one, start a new one"),
  "doctor": ("gpurobot.doctor", "check the installation"),
  "completion": ("gpurobot.completion", "complete this command in a shell"),
}
HELP = """usage: gpurobot <program> [key=value ...]

{programs}

gpurobot <program> --help lists the settings of a program; gpurobot --version prints the version.
"""


def main(argv: list[str] | None = None) -> int | None:
  """Run the program that the first word names; return its exit status, None if it is 0."""
  first, *words = (sys.argv[1:] if argv is None else argv) or ["--help"]
  if first in ("--help", "-h"):
    print(describe(), end="")
  elif first == "--version":
    print(f"gpurobot {version()}")
  else:
    own_packages.prefer()
    if first not in PROGRAMS:
      _fail(first)
    sys.argv = [f"gpurobot {first}", *words]  # what the usage line of its help shows
    status: int | None = importlib.import_module(PROGRAMS[first][0]).main(words)
    return status
  return None


def describe() -> str:
  """Return the list of the programs, with a line about each."""
  width = max(map(len, PROGRAMS))
  lines = (f"  {name:{width}}  {meaning}" for name, (_, meaning) in PROGRAMS.items())
  return HELP.format(programs="\n".join(lines))


def version() -> str:
  """Return the version that is installed, or that none is: the code runs where it lies."""
  from importlib import metadata  # noqa: PLC0415 (it takes as long as the rest)

  try:
    return metadata.version("gpurobot")
  except metadata.PackageNotFoundError:
    return f"in {own_packages.PLACE}, not installed"


def _fail(word: str) -> NoReturn:
  """Say in one line that a word names no program; exit with status 2."""
  from tasks.core.words import suggestion  # noqa: PLC0415 (of gpurobot's own tasks)

  if "=" in word:
    message = f"'{word}' comes after the name of a program: gpurobot train {word}"
  else:
    hint = suggestion(word, PROGRAMS) or "; gpurobot --help lists them"
    message = f"there is no program '{word}'{hint}"
  print(f"error: {message}", file=sys.stderr)
  raise SystemExit(2)
