"""Words and output of benchmarks: mistakes end in one line, results are `name: value` lines."""

import sys
from collections.abc import Callable, Collection, Sequence

from gpurobot.settings.config import ConfigError
from tasks import UnknownTask

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


def start_whole(run: Callable[[], None]) -> None:
  """Run a benchmark that takes no words; a given word is a mistake, which ends in one line."""
  if words := sys.argv[1:]:
    sys.exit(f"error: '{words[0]}' has no meaning here: leave it out, this is measured as a whole")
  run()


def check_names(names: Sequence[str], known: Collection[str]) -> None:
  """End the program in one line if some of the names are unknown."""
  for name in names:
    if name not in known:
      sys.exit(f"error: no '{name}' to measure; there are: {', '.join(known)}")
