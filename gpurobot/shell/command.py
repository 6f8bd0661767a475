"""Command `gpurobot`: `gpurobot train task=cartpole` runs the program `train` with the words after it."""

import importlib
import sys
from typing import NoReturn

from gpurobot import own_packages
from gpurobot.device import process
from gpurobot.run import output
from gpurobot.shell.programs import HELP, PROGRAMS

USAGE = """usage: gpurobot <program> [key=value ...]

{programs}

gpurobot <program> --help lists the settings of a program; gpurobot --version prints the version."""


def main(argv: list[str] | None = None) -> int | None:
  """Run the program that the first word names; return its exit status, None if it is 0."""
  first, *words = (sys.argv[1:] if argv is None else argv) or ["--help"]
  with output.until_unread():
    if text := _text(first, words):
      print(text)
      return None
  with process.collection_paused():
    program = importlib.import_module(PROGRAMS[first].module)
  status: int | None = program.main(words)
  return status


def _text(first: str, words: list[str]) -> str | None:
  """Return the text that the words ask for if no program is needed; None if they name one to run."""
  if first in HELP:
    return describe()
  if first == "--version":
    return f"gpurobot {version()}"
  own_packages.prefer()
  if first not in PROGRAMS:
    _fail(first)
  sys.argv = [f"gpurobot {first}", *words]  # shown by the usage line of its help
  return _help(first, words) if {*HELP} & {*words} else None


def describe() -> str:
  """Return the list of the programs, with a line about each."""
  width = max(map(len, PROGRAMS))
  lines = (f"  {name:{width}}  {meaning}" for name, (_, meaning, _) in PROGRAMS.items())
  return USAGE.format(programs="\n".join(lines))


def _help(name: str, words: list[str]) -> str | None:
  """Return the help text of a program if that needs none of its libraries."""
  from gpurobot.shell import quick_help  # noqa: PLC0415 (the list of the programs needs no library)

  return quick_help.text(name, words)


def version() -> str:
  """Return the installed version, or the folder of code that runs without installation."""
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
