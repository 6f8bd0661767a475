"""Keys of a terminal while a robot runs: commands and stop."""

import contextlib
import os
import select
import sys
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gpurobot.robot.interface import Floats
from gpurobot.robot.safety import StopError

KEYS = {"w": (0, 1), "s": (0, -1), "a": (1, 1), "d": (1, -1), "q": (2, 1), "e": (2, -1)}  # command, sign
STILL, STOP = " ", "x\x1b"
HELP = "keys: w s ahead and back, a d to the left and right, q e turn, space stands still, x stops"
STEPS = 5  # of a key from 0 to the end of a command's range


class Commands:
  """Commands of a policy, which keys change."""

  def __init__(self, ranges: Sequence[Mapping[str, Sequence[float]]], first: Sequence[float]) -> None:
    """Begin with `first`, or zeros; `ranges` are the manifest's commands."""
    self._low, self._high = np.array([known["range"] for known in ranges], np.float64).reshape(-1, 2).T
    self.values: Floats = np.clip(first or np.zeros(len(ranges)), self._low, self._high)

  def share(self, shares: Sequence[float]) -> None:
    """Command shares of the ranges, from -1 to 1."""
    known = zip(shares, self._low, self._high, strict=False)
    self.set([abs(share) * (low if share < 0 else high) for share, low, high in known])

  def set(self, values: Sequence[float]) -> None:
    """Command the first values, as far as their ranges go; missing ones are 0."""
    given = np.zeros(len(self._low))
    given[: len(values)] = values[: len(given)]
    self.values = np.clip(given, self._low, self._high)

  def press(self, keys: str) -> None:
    """Apply keys; raise StopError if one of them asks for a stop."""
    for key in keys:
      if key in STOP:
        raise StopError("a key was pressed")
      if key == STILL:
        self.values = np.clip(0.0 * self.values, self._low, self._high)
      elif key in KEYS and KEYS[key][0] < len(self.values):
        index, sign = KEYS[key]
        moved = self.values.copy()
        moved[index] += sign * max(-self._low[index], self._high[index]) / STEPS
        self.values = np.clip(moved, self._low, self._high)


@contextlib.contextmanager
def listening() -> Iterator[bool]:
  """Let the terminal pass each key on at once; yield whether there is a terminal."""
  if sys.stdin is None or not sys.stdin.isatty():
    yield False
    return
  import termios  # noqa: PLC0415 (of POSIX alone)
  import tty  # noqa: PLC0415

  before = termios.tcgetattr(sys.stdin)
  tty.setcbreak(sys.stdin)
  try:
    yield True
  finally:
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def pressed() -> str:
  """Return the keys that were pressed, without waiting."""
  ready, _, _ = select.select([sys.stdin], [], [], 0)
  return os.read(sys.stdin.fileno(), 64).decode(errors="ignore") if ready else ""
