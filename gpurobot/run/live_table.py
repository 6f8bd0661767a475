"""Live table of a training on a terminal: progress, returns, rewards, task metrics, learning, troubles."""

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from gpurobot.run import metrics
from gpurobot.run.display import Display, Progress
from gpurobot.run.folder import shown
from gpurobot.run.returns import Returns

REFRESH = 1.0  # drawings per second: each takes a few milliseconds of the host
NARROWEST, GAP = 36, 3  # width of a column of blocks, and between two [characters]
BAR = 8  # width of the bar of a reward's term [characters]
TITLE, FAINT, TROUBLE = "bold cyan", "dim", "bold yellow"
SHARES = ("success", "clipped", "replay/filled", "obs/clipped", "utilisation")  # shown in percent
# Columns of the log, and what they are called here.
EPISODES = (
  ("return", "return"),
  ("greedy_return", "without noise"),
  ("teacher_return", "of the teacher"),
  ("length", "length"),
  ("success", "success"),
)
LEARNING = (
  ("kl", "KL"),
  ("entropy", "entropy"),
  ("action/std", "action std"),
  ("clipped", "clipped"),
  ("value_loss", "value loss"),
  ("explained_variance", "explained variance"),
  ("temperature", "temperature"),
  ("gradient_norm", "gradient norm"),
  ("learning_rate", "learning rate"),
  ("behaviour/kl", "KL of what acted"),
  ("replay/filled", "replay filled"),
  ("updates_per_sample", "updates per sample"),
)
MACHINE = (
  ("memory/process", "memory [GB]"),
  ("memory/device", "GPU memory [GB]"),
  ("utilisation", "utilisation"),
)
TROUBLES = (  # counters of the log that are 0 in a healthy run
  ("overflow", "contacts dropped"),
  ("nonfinite", "environments diverged"),
  ("nonfinite_samples", "samples left out"),
  ("skipped_updates", "updates skipped"),
)


@dataclass(frozen=True)
class Line:
  """Line of a block: a name, and a number with a bar if there is a scale."""

  name: str
  value: str
  bar: float | None = None  # -1 ... 1


@dataclass(frozen=True)
class Block:
  """Titled lines that belong together."""

  title: str
  lines: Sequence[Line]


class LiveTable(Display):
  """Display that is drawn anew in place; what else is printed appears above it."""

  def __init__(self, console: Console, task: str, folder: Path, returns: Returns) -> None:
    """Draw on a console, which is a terminal."""
    super().__init__(console)
    self._task, self._folder, self._returns = task, shown(folder), returns
    self._row: Mapping[str, float] = {}
    self._progress = Progress(0, 0, 0.0)
    self._warnings = 0
    self._live = Live(
      self,
      console=console,
      refresh_per_second=REFRESH,
      redirect_stderr=sys.stderr is not None and sys.stderr.isatty(),  # a file gets all lines
      vertical_overflow="crop",
    )
    self._live.start()

  def tell(self, text: str) -> None:
    """Print a text above the table."""
    self._console.print(text, soft_wrap=True)

  def warn(self, warning: str) -> None:
    """Print a warning above the table, and count it there."""
    self._warnings += 1
    super().warn(warning)

  def progress(self, progress: Progress) -> None:
    """Show how far the training has come at the next drawing."""
    self._progress = progress

  def write(self, row: Mapping[str, float]) -> None:
    """Show a row at the next drawing; the figures of episodes stay until the next one ends."""
    kept = {column: self._row[column] for column, _ in EPISODES if column in self._row}
    self._row = {
      **row,
      **{column: value for column, value in kept.items() if math.isnan(row.get(column, math.nan))},
    }

  def close(self) -> None:
    """Draw for the last time, and leave the table where it is."""
    self._live.stop()

  def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
    """Draw the table within the terminal."""
    # A terminal echoes Ctrl-C behind the last line: it must not begin another one.
    width, height = options.max_width - len("^C"), console.size.height
    head = [self._title(width), self._bar(width, options.ascii_only)]
    troubles = self._troubles(width)
    room = height - len(head) - (2 if troubles else 0) - 2  # the cursor stands on a line of its own
    yield Text("\n").join(head)
    if self._row:
      count = max(1, (width + GAP) // (NARROWEST + GAP))
      blocks = self._blocks((width - GAP * (count - 1)) // count, options.ascii_only)
      columns = placed(blocks, count, room)
      if any(columns):
        yield Text("")
        yield from draw(columns, width, options.ascii_only)
    if troubles:
      yield Text("")
      yield troubles

  def _title(self, width: int) -> Text:
    """Return the task and the run folder."""
    text = Text.assemble((self._task, "bold"), "  ", (str(self._folder), FAINT), no_wrap=True)
    text.truncate(width, overflow="ellipsis")
    return text

  def _bar(self, width: int, plain: bool) -> Text:
    """Return the bar, the times, the steps and the speed."""
    progress = self._progress
    since = time.monotonic() - progress.at
    done = fitted(["" if progress.done is None else f" {min(progress.done, 1):4.0%}"], width)
    left = "" if progress.left is None else f", {clock(progress.left - since)} left"
    speed = f", {self._row['steps_per_second']:,.0f}/s" if self._row else ""
    parts = (f"  {clock(progress.seconds + since)}", left, f"  {progress.steps:,} steps", speed)
    facts = fitted(parts, width - len(done))
    room = max(width - len(done) - len(facts), 0)
    filled = 0 if progress.done is None else round(min(progress.done, 1) * room)
    full, empty = "#-" if plain else "━━"
    return Text.assemble((full * filled, "green"), (empty * (room - filled), FAINT), (done, "bold"), facts)

  def _blocks(self, width: int, plain: bool) -> list[Block]:
    """Return the blocks that have lines, the most important first."""
    row, terms = self._row, dict[str, float]()
    task, times, losses = (list[Line]() for _ in range(3))
    for column, value in row.items():
      group, _, name = metrics.find(column).tag.partition("/")
      if group == "task":
        task.append(Line(name, number(value)))
      elif column.startswith("own_loss/"):
        losses.append(Line(f"own loss {name.removeprefix('own/')}", number(value)))
      elif group == "time":
        times.append(Line(name, f"{value:.0%}"))
      elif group == "reward" and column not in ("reward/min", "reward/max"):
        terms[name] = value
    blocks = (
      Block("Episodes", self._episodes(width, plain)),
      Block("Reward per step", list(with_bars(terms))),
      Block("Task", task),
      Block("Learning", [*known(row, LEARNING), *losses]),
      Block("Time of two threads at once" if "behaviour/age" in row else "Time", times),
      Block("Machine", list(known(row, MACHINE))),
    )
    return [block for block in blocks if block.lines]

  def _episodes(self, width: int, plain: bool) -> list[Line]:
    """Return the lines about the returns of episodes, and their success if the task tells it."""
    lines = list(known(self._row, EPISODES))
    if not lines:
      return [Line("return", "no episode ended yet")]
    if self._returns.best is not None:
      lines.insert(1, Line("best", number(self._returns.best)))
    curve = "" if plain else self._returns.sparkline(width - len("curve  "))
    return lines + ([Line("curve", curve)] if len(curve) > 1 else [])

  def _troubles(self, width: int) -> Text | None:
    """Return what went wrong so far, if anything did."""
    counts = [(name, self._row.get(column, 0.0)) for column, name in TROUBLES]
    counts.append(("warnings above", self._warnings))
    found = [f", {name}: {count:,.0f}" for name, count in counts if count > 0]
    return Text(fitted(["!", *found], width).replace("!,", "!"), TROUBLE) if found else None


def fitted(parts: Sequence[str], width: int) -> str:
  """Return the first parts of a line that fit in `width` characters: part of a number is another number."""
  return next(line for end in range(len(parts), -1, -1) if len(line := "".join(parts[:end])) <= max(width, 0))


def known(row: Mapping[str, float], names: Sequence[tuple[str, str]]) -> Iterator[Line]:
  """Yield a line for each column that has a number, with its name."""
  for column, name in names:
    value = row.get(column, math.nan)
    if not math.isnan(value):
      yield Line(name, f"{value:.1%}" if column in SHARES else number(value))


def with_bars(terms: Mapping[str, float]) -> Iterator[Line]:
  """Yield a line for each term of the reward, with its size relative to the largest."""
  largest = max((abs(value) for value in terms.values() if math.isfinite(value)), default=0.0) or 1.0
  for name, value in terms.items():
    yield Line(name, number(value), value / largest if math.isfinite(value) else 0.0)


def number(value: float) -> str:
  """Return a number with about four digits, so that it keeps its width while it changes slowly."""
  size = abs(value)
  if size >= 1000:
    return f"{value:,.0f}"
  if 0 < size < 0.001:
    return f"{value:.1e}"
  return f"{value:.{1 if size >= 100 else 2 if size >= 10 else 3 if size >= 0.1 else 4}f}"


def clock(seconds: float) -> str:
  """Return a time as hours, minutes and seconds."""
  minutes, rest = divmod(round(max(seconds, 0)), 60)
  return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def placed(blocks: Sequence[Block], count: int, height: int) -> list[list[Block]]:
  """Return `count` columns of at most `height` lines; each block goes to the shortest.

  A block is cut where it does not fit, and left out where not even two of its lines fit.
  """
  columns: list[list[Block]] = [[] for _ in range(count)]
  used = [0] * count
  for block in blocks:
    index = used.index(min(used))
    room = height - used[index] - 1  # the title
    lines = list(block.lines)
    if len(lines) > room:
      lines = [*lines[: room - 1], Line(f"... {len(lines) - room + 1} more", "")]
    if room >= 2 or len(block.lines) <= room:
      columns[index].append(Block(block.title, lines))
      used[index] += len(lines) + 2  # the title, and an empty line after the block
  return columns


def draw(columns: Sequence[Sequence[Block]], width: int, plain: bool) -> Iterator[Text]:
  """Yield the lines of columns of blocks, side by side."""
  own = (width - GAP * (len(columns) - 1)) // len(columns)
  drawn = [[*column_lines(blocks, own, plain)] for blocks in columns]
  for index in range(max(map(len, drawn))):
    cells = [lines[index] if index < len(lines) else Text(" " * own) for lines in drawn]
    yield Text(" " * GAP).join(cells)


def column_lines(blocks: Sequence[Block], width: int, plain: bool) -> Iterator[Text]:
  """Yield the lines of a column of blocks, each `width` characters wide."""
  for index, block in enumerate(blocks):
    if index:
      yield Text(" " * width)
    yield padded(Text(block.title, TITLE), width)
    barred = any(line.bar is not None for line in block.lines)
    for line in block.lines:
      yield padded(line_text(line, width - (BAR + 1) * barred, plain), width)


def line_text(line: Line, width: int, plain: bool) -> Text:
  """Return a name at the left and a number at the right of `width` characters, and the bar after them."""
  value = fitted([line.value], width - 1)
  name = Text(line.name)
  name.truncate(max(width - len(value) - 1, 1), overflow="ellipsis")
  text = Text.assemble(name, " " * max(width - len(name) - len(value), 0), value)
  if line.bar is not None:
    size = round(abs(line.bar) * BAR)
    text.append(" " + ("=" if plain else "█") * size, "green" if line.bar > 0 else "red")
  return text


def padded(text: Text, width: int) -> Text:
  """Return a text as wide as its column."""
  text.truncate(width, overflow="ellipsis", pad=True)
  return text
