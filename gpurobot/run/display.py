"""Display of a training: lines on any output; `log.console=none` shows warnings alone."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from gpurobot.run.output import printable

PARTS = tuple(f"time/{part}" for part in ("physics", "task", "policy", "update"))  # of an iteration
COLUMNS = (  # key, heading, format
  ("iteration", "iter", "6d"),
  ("steps", "steps", "12,d"),
  ("seconds", "time s", "7.1f"),
  ("steps_per_second", "steps/s", "10,.0f"),
  *((part, part.removeprefix("time/"), "7.0%") for part in PARTS),
  ("return", "return", "9.2f"),
  ("length", "length", "7.1f"),
  ("kl", "KL", "8.4f"),
  ("entropy", "entropy", "8.2f"),
  ("value_loss", "v loss", "8.4f"),
  ("learning_rate", "rate", "9.2e"),
)
EPISODES = ("return", "length")  # columns without a number where no episode has ended
OF_SOME = ("kl", "value_loss", *PARTS)  # columns that the algorithm or the device may lack
HEADING_EVERY = 25  # lines


@dataclass(frozen=True)
class Progress:
  """How far a training has come."""

  iteration: int
  steps: int
  seconds: float  # of training
  done: float | None = None  # share of the nearest limit; None without one
  left: float | None = None  # time to that limit, at the speed so far [s]
  at: float = field(default_factory=time.monotonic)  # moment of these numbers [s]


class PlainConsole(Console):
  """Console that prints its own styles, and no control codes of a text."""

  def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
    """Yield the parts of the output."""
    for part in super().render(renderable, options):
      yield part if part.control else part._replace(text=printable(part.text))


class Display:
  """Display that shows warnings alone."""

  def __init__(self, console: Console) -> None:
    """Print on a console."""
    self._console = console

  def tell(self, text: str) -> None:
    """Show a text that may have several lines."""

  def warn(self, warning: str) -> None:
    """Show a warning."""
    self._console.print(f"warning: {warning}", style="yellow", soft_wrap=True)

  def progress(self, progress: Progress) -> None:
    """Show how far the training has come, after each iteration."""

  def write(self, row: Mapping[str, float]) -> None:
    """Show a row of the log."""

  def close(self) -> None:
    """Give the terminal back; texts and warnings may follow."""


class Lines(Display):
  """Display of one line per row of the log, with a heading every HEADING_EVERY lines."""

  def __init__(self, console: Console) -> None:
    super().__init__(console)
    self._lines = 0

  def tell(self, text: str) -> None:
    """Print a text."""
    self._console.print(text, soft_wrap=True)

  def write(self, row: Mapping[str, float]) -> None:
    """Print a line."""
    if self._lines % HEADING_EVERY == 0:
      widths = [len(format(0, spec)) for _, _, spec in COLUMNS]
      heads = [f"{head:>{width}}" for (_, head, _), width in zip(COLUMNS, widths, strict=True)]
      self._console.print(" ".join(heads), style="bold", soft_wrap=True)
    self._lines += 1
    known = {**dict.fromkeys(OF_SOME, math.nan), **row}
    cells = (_cell(key, known.get(key, 0), spec) for key, _, spec in COLUMNS)
    self._console.print(" ".join(cells), soft_wrap=True)


def _cell(key: str, value: float, spec: str) -> str:
  """Return a number of a line; a dash where there is none."""
  if key in (*EPISODES, *OF_SOME) and math.isnan(value):
    return f"{'-':>{len(format(0, spec))}}"
  return format(value, spec)
