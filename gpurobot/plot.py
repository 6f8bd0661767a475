"""Learning curves: python -m gpurobot.plot runs/ant runs/other [key=value ...].

Each folder is a run, or contains runs at any depth. Runs below one folder that differ only in their seed make
one curve: their mean and the band from their minimum to their maximum, over the range that all of them cover.
"""

import dataclasses
import itertools
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpurobot import extras
from gpurobot.device.distributed import World
from gpurobot.learn.algorithm import counted
from gpurobot.run.csv_log import numbers
from gpurobot.run.files import read_json
from gpurobot.run.metrics import find
from gpurobot.run.returns import scores
from gpurobot.settings.config import ConfigError, LogConfig, assign, leaves, option, pairs, suggestion
from gpurobot.shell import cli, help_text
from gpurobot.shell.programs import HELP

if TYPE_CHECKING:
  from matplotlib.axes import Axes
  from matplotlib.figure import Figure

# Settings in which the runs of a curve may differ: the seed, and settings that do not affect learning.
FREE = {"seed", "run_dir", "resume", "threads", "checkpoint_seconds", "log_every", "record_every", "debug"}
FREE |= set(leaves(LogConfig(), "log."))
POINTS = 300  # points per curve
AXES = {"seconds": "training time [s]", "steps": "environment steps", "iteration": "iteration"}
Rows = list[dict[str, float]]
Numbers = NDArray[np.float64]


class Progress(StrEnum):
  """Horizontal axis of the curves: a column of metrics.csv."""

  seconds = "seconds"
  steps = "steps"
  iteration = "iteration"


@dataclasses.dataclass
class Plot:
  """Learning curves."""

  y: str = option("return", "columns of metrics.csv to plot, one panel each: y=return,length")
  x: Progress = option(Progress.seconds, "horizontal axis: seconds, steps, iteration")
  out: str = option("curves.png", "image file to write; its suffix sets the format")
  debug: bool = option(False, "show the traceback of an error")


@dataclasses.dataclass(frozen=True)
class LearningCurve:
  """The settings and log rows of one run, and the folder that groups it with others."""

  root: Path
  config: dict[str, Any]
  rows: Rows

  @property
  def settings(self) -> dict[str, Any]:
    """The settings, without those in which the runs of a curve may differ."""
    return {key: value for key, value in self.config.items() if key not in FREE}


def read(folder: Path) -> list[LearningCurve]:
  """Return the run in a folder, or all runs below it; raise ConfigError if there is none."""
  found, root = sorted(folder.rglob("metrics.csv")), folder
  if folder / "metrics.csv" in found:
    found, root = [folder / "metrics.csv"], folder.parent
  runs = [_read_run(path.parent, root) for path in found]
  if not any(run.rows for run in runs):
    raise ConfigError(f"{folder} has no run with a row in metrics.csv")
  return [run for run in runs if run.rows]


def _read_run(folder: Path, root: Path) -> LearningCurve:
  return LearningCurve(root, read_json(folder / "config.json", task=str), numbers(folder / "metrics.csv"))


def curves(runs: Iterable[LearningCurve]) -> dict[str, list[Rows]]:
  """Return the rows of each curve's runs, by the label that distinguishes the curve."""
  groups: list[list[LearningCurve]] = []
  for run in runs:
    like = [group for group in groups if (group[0].root, group[0].settings) == (run.root, run.settings)]
    if like:
      like[0].append(run)
    else:
      groups.append([run])
  firsts = [group[0] for group in groups]
  return {_label(group, firsts): [run.rows for run in group] for group in groups}


def _label(group: list[LearningCurve], firsts: list[LearningCurve]) -> str:
  """Return a label: the task, and the folder and settings in which its curves differ."""
  own = group[0]
  peers = [run for run in firsts if run.config["task"] == own.config["task"]]
  words: list[str] = [own.config["task"]]
  if any(run.root != own.root for run in peers):
    words.append(str(own.root))
  for key, value in own.settings.items():
    if any(run.settings.get(key) != value for run in peers):
      words.append(f"{key}={value}".replace(" ", ""))
  return " ".join(words) + (f", {len(group)} runs" if len(group) > 1 else "")


def curve(rows: Rows, column: str, x: str) -> list[tuple[float, float]]:
  """Return x and the column of each row with a number; for a mean over episodes, the mean of its `Score`."""
  if column == "episodes" or not find(column).tag.startswith("episode/"):
    return [(row[x], row[column]) for row in rows if np.isfinite(row[column])]
  found = zip(rows, scores(rows, column), strict=True)
  return [(row[x], score.mean) for row, score in found if score.mean is not None and np.isfinite(row[column])]


def band(runs: list[Rows], column: str, x: str = "seconds") -> tuple[Numbers, ...]:
  """Return x, minimum, mean and maximum over the runs, [POINTS] each, over the range that all runs cover.

  Raises ConfigError if there is no such range.
  """
  known = [np.array(curve(rows, column, x)) for rows in runs]
  starts, ends = np.transpose([points[[0, -1], 0] if len(points) else (np.inf, -np.inf) for points in known])
  if ends.min() < starts.max():
    raise ConfigError(f"a run has no values in '{column}', or none in the range of the others; leave it out")
  grid = np.linspace(starts.max(), ends.min(), POINTS)
  values = np.stack([np.interp(grid, points[:, 0], points[:, 1]) for points in known])
  return grid, values.min(axis=0), values.mean(axis=0), values.max(axis=0)


def draw_curve(axes: "Axes", label: str, runs: list[Rows], column: str, x: str = "seconds") -> None:
  """Draw the mean of runs, and the band between their minimum and maximum."""
  grid, low, mean, high = band(runs, column, x)
  (line,) = axes.plot(grid, mean, label=label)
  axes.fill_between(grid, low, high, alpha=0.25, linewidth=0, color=line.get_color())


def draw(found: dict[str, list[Rows]], settings: Plot) -> "Figure":
  """Return a figure with a panel for each column of y; raise ConfigError if a run lacks a column."""
  with extras.require_extra("plot"):
    from matplotlib.figure import Figure  # noqa: PLC0415 (an extra)
  columns = settings.y.split(",")
  figure = Figure(figsize=(max(7, 4.5 * len(columns)), 4), layout="constrained")
  panels = figure.subplots(1, len(columns), squeeze=False)[0]
  for axes, column in zip(panels, columns, strict=True):
    for label, runs in found.items():
      _check_columns((settings.x, column), label, runs)
      draw_curve(axes, label, runs, column, settings.x)
    axes.set(xlabel=AXES[settings.x], ylabel=column.replace("_", " "), xlim=(0, None))
    axes.grid(alpha=0.3)
  panels[0].legend()
  return figure


def _check_columns(columns: Iterable[str], label: str, runs: list[Rows]) -> None:
  for rows, column in itertools.product(runs, columns):
    if column not in rows[0]:
      raise ConfigError(f"no column '{column}' in {label}{suggestion(column, rows[0])}")


def plot(words: list[str]) -> None:
  """Write the image for the given folders and settings; raise ConfigError on a mistake in them."""
  folders = [Path(word) for word in words if "=" not in word or Path(word).exists()]
  settings = assign(Plot(), pairs([word for word in words if Path(word) not in folders], leaves(Plot())))
  if not folders:
    raise ConfigError("no run folder is given; write for example: python -m gpurobot.plot runs/ant")
  runs = [run for folder in folders for run in read(folder)]
  draw(curves(runs), settings).savefig(settings.out, dpi=120)
  print(f"{settings.out}: {counted(len(runs), 'run')}")


def main(argv: list[str]) -> None:
  """Plot the runs given in `argv`, or print help; a mistake ends the program with one line and status 2."""
  with cli.user_errors(argv, World()):
    if set(HELP) & set(argv):
      print(help_text.of_settings(Plot(), "python -m gpurobot.plot folder ..."))
    else:
      plot(argv)


if __name__ == "__main__":
  main(sys.argv[1:])
