"""Mean returns of a run: the last, the best, the levels reached, and where they are heading."""

import itertools
import math
from collections import deque
from typing import ClassVar

MOST_POINTS = 512  # points of the curve that are kept
HEADING = 0.05  # share of the curve's range by which its last tenth differs if it rises or falls
FEWEST = 20  # points that a heading needs
WINDOW = 100  # episodes, at least, over which the best mean return is found


class Returns:
  """Mean returns of the rows of a log, in order."""

  BARS: ClassVar = "▁▂▃▄▅▆▇█"

  def __init__(self) -> None:
    self.last: float | None = None  # mean over the episodes of the last row with an ended one
    self.best: float | None = None  # highest mean over the last rows with WINDOW episodes together
    self.best_steps = 0  # environment steps at the best one
    self._window = deque[tuple[float, float]]()  # episodes and their sum of returns, of the last rows
    self.reached: dict[str, float] = {}  # level of the mean return -> seconds of training
    self._points: list[float] = []  # means of `_each` rows
    self._each, self._row = 1, list[float]()

  def add(self, value: float, episodes: float, steps: int, seconds: float) -> None:
    """Add the mean return of a row, over the `episodes` that ended in it, after `steps` environment steps.

    One that is not finite changes nothing.
    """
    if not math.isfinite(value):
      return
    self.last = value
    self._note_best(value, episodes, steps)
    self._note_levels(value, seconds)
    self._row.append(value)
    if len(self._row) == self._each:
      self._points.append(sum(self._row) / self._each)
      self._row.clear()
    if len(self._points) == MOST_POINTS:
      self._points = resampled(self._points, MOST_POINTS // 2)
      self._each *= 2

  def _note_best(self, value: float, episodes: float, steps: int) -> None:
    """Note the mean over as few of the last rows as have WINDOW episodes: few episodes may be lucky."""
    self._window.append((episodes, episodes * value))
    count, total = (sum(column) for column in zip(*self._window, strict=True))
    while count - self._window[0][0] >= WINDOW:
      episodes, returns = self._window.popleft()
      count, total = count - episodes, total - returns
    if count >= WINDOW and (self.best is None or total / count > self.best):
      self.best, self.best_steps = total / count, steps

  def _note_levels(self, value: float, seconds: float) -> None:
    """Note when the mean return first came to each level of one digit (..., 900, 1000, 2000, ...)."""
    if value <= 0:
      return
    digits = math.floor(math.log10(value))
    for exponent in (digits - 1, digits):
      for digit in range(1, 10):
        if digit * 10.0**exponent <= value:
          self.reached.setdefault(f"{digit * 10.0**exponent:g}", seconds)

  @property
  def heading(self) -> str:
    """Whether the returns are "rising", "falling" or "level": their last tenth beside the one before."""
    count = len(self._points) // 10
    if len(self._points) < FEWEST:
      return ""
    before, now = (sum(part) / count for part in (self._points[-2 * count : -count], self._points[-count:]))
    change = (now - before) / max(max(self._points) - min(self._points), 1e-9)
    return "rising" if change > HEADING else "falling" if change < -HEADING else "level"

  def sparkline(self, width: int) -> str:
    """Return the curve as text of at most `width` bars."""
    points = resampled(self._points, min(width, len(self._points)))
    if not points:
      return ""
    low, high = min(points), max(points)
    scale = (len(self.BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(self.BARS[round((point - low) * scale)] for point in points)


def resampled(points: list[float], count: int) -> list[float]:
  """Return `count` means of consecutive points, which are as many or more."""
  bounds = [index * len(points) // count for index in range(count + 1)] if count else []
  parts = [points[start:end] for start, end in itertools.pairwise(bounds)]
  return [sum(part) / len(part) for part in parts]
