"""Scores of a run over its last episodes; its best return, the levels reached, and where returns head."""

import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

MOST_POINTS = 512  # points of the curve that are kept
HEADING = 0.05  # share of the curve's range by which its last tenth differs if it rises or falls
FEWEST = 20  # points that a heading needs
WINDOW = 100  # episodes, at least, of a score


class Score:
  """Mean of a column of the log over as few of its last rows as have WINDOW episodes together.

  Few episodes may be lucky. As long as there are fewer, the mean is over all rows. Rows weigh by their
  episodes; those without one, which a mean over steps may have, count as of one.
  """

  def __init__(self) -> None:
    self.episodes = 0.0  # of the rows
    self._rows = deque[tuple[float, float]]()  # value and episodes of each

  def add(self, value: float, episodes: float) -> None:
    """Add a row in which `episodes` have ended; a value that is not finite changes nothing."""
    if not math.isfinite(value):
      return
    self._rows.append((value, episodes))
    self.episodes += episodes
    while self.episodes - self._rows[0][1] >= WINDOW:
      self.episodes -= self._rows.popleft()[1]

  @property
  def mean(self) -> float | None:
    """The mean; None before there is one."""
    weight = sum(max(episodes, 1.0) for _, episodes in self._rows)
    return sum(max(episodes, 1.0) * value for value, episodes in self._rows) / weight if weight else None


def scores(rows: Iterable[Mapping[str, Any]], column: str) -> Iterator[Score]:
  """Yield the score of a column, the same object, after each row; old logs lack the number of episodes."""
  score = Score()
  for row in rows:
    score.add(float(row.get(column, math.nan)), float(row.get("episodes", WINDOW)))
    yield score


class Returns:
  """Mean returns of the rows of a log, in order."""

  BARS: ClassVar = "▁▂▃▄▅▆▇█"

  def __init__(self) -> None:
    self.score = Score()
    self.best: float | None = None  # highest score over WINDOW episodes or more
    self.best_steps, self.best_episodes = 0, 0.0  # environment steps at the best one, and its episodes
    self.reached: dict[str, float] = {}  # level of the score -> seconds of training
    self._points: list[float] = []  # means of `_each` rows
    self._each, self._row = 1, list[float]()

  def add(self, value: float, episodes: float, steps: int, seconds: float) -> None:
    """Add the mean return of a row, over the `episodes` that ended in it, after `steps` environment steps.

    One that is not finite changes nothing.
    """
    if not math.isfinite(value):
      return
    self.score.add(value, episodes)
    mean, count = self.score.mean, self.score.episodes
    if mean is not None and count >= WINDOW:
      self._note_levels(mean, seconds)
      if self.best is None or mean > self.best:
        self.best, self.best_steps, self.best_episodes = mean, steps, count
    self._row.append(value)
    if len(self._row) == self._each:
      self._points.append(sum(self._row) / self._each)
      self._row.clear()
    if len(self._points) == MOST_POINTS:
      self._points = resampled(self._points, MOST_POINTS // 2)
      self._each *= 2

  def _note_levels(self, value: float, seconds: float) -> None:
    """Note when the score first came to each level of one digit (..., 900, 1000, 2000, ...)."""
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
