"""Words and output of benchmarks: mistakes end in one line, results are `name: value` lines.

Figures that are compared are measured in turn, and their medians count.
"""

import statistics
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from gpurobot.settings.config import ConfigError, assign, leaves, pairs
from tasks import UnknownTask

T = TypeVar("T")
printed: dict[str, float] = {}  # values of the lines of this process by name


def line(name: str, value: float) -> None:
  """Print `name: value` with four significant digits, or as a whole number from 1000 on."""
  printed[name] = value
  print(f"{name}: {value:.0f}" if abs(value) >= 1000 else f"{name}: {value:.4g}", flush=True)


def read(text: str) -> dict[str, float]:
  """Return the values of `name: value` lines by name."""
  return {name: float(value) for name, value in (row.split(": ") for row in text.splitlines())}


def start(run: Callable[[list[str]], None]) -> None:
  """Run a benchmark with the words of the command line; a mistake in them ends in one line."""
  try:
    run(sys.argv[1:])
  except (ConfigError, UnknownTask) as error:
    sys.exit(f"error: {error}")


def settings(defaults: T, words: Sequence[str]) -> T:
  """Return settings with those that the words `key=value` change."""
  return assign(defaults, pairs([*words], leaves(defaults)))


def in_turn(runs: Mapping[str, Callable[[], T]], count: int) -> list[dict[str, T]]:
  """Return what the functions return, called in turn `count` times, after a call of each to warm up."""
  for run in runs.values():
    run()
  return [{name: run() for name, run in runs.items()} for _ in range(count)]


def compare(name: str, runs: Mapping[str, Callable[[], float]], count: int, ratio: str = "ratio") -> None:
  """Print the median figure of each function over `count` turns, and the first one's ratio to the second."""
  turns = in_turn(runs, count)
  for each in runs:
    line(f"{name}.{each}", statistics.median(turn[each] for turn in turns))
  if len(runs) > 1:
    own, peer = runs
    line(f"{name}.{ratio}", statistics.median(turn[own] / turn[peer] for turn in turns))


def check_names(names: Sequence[str], known: Collection[str]) -> None:
  """End the program in one line if some of the names are unknown."""
  for name in names:
    if name not in known:
      sys.exit(f"error: no '{name}' to measure; there are: {', '.join(known)}")
