"""Short trainings beside the kept learning curves: does a task still learn as it did?

`python -m benchmarks.learning.regression task ... [key=value ...]` trains the first seed of each task for
4,000,000 steps, or `max_steps=...`, and compares where it ends with the curve in docs/curves. The pace of a
training is the number of steps after which the curve had got as far, over its own steps. Learning is chaotic,
and the same seed gives other bits on another processor, so a pace between a half and two says nothing; below
a half the task is behind, and the program ends with status 1. `runs=folder,...` compares existing runs, one
for each task.
"""

import math
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks import cases
from benchmarks.learning import curves
from benchmarks.learning.curves import ROOT
from benchmarks.markdown import markdown, text
from gpurobot.plot import Rows

STEPS = 4_000_000
WINDOW = 5  # rows of a log; their mean judges a training
BEHIND = 0.5  # pace below which a task does not learn as it did


def judged(curve: cases.Curve) -> tuple[str, bool]:
  """Return the column that judges a task, its goal's or the return, and whether more of it is better."""
  return (curve.goals[0].column, curve.goals[0].least) if curve.goals else ("return", True)


def smooth(rows: Rows, column: str) -> list[tuple[float, float]]:
  """Return steps, and means of the column over WINDOW rows up to there; rows without a value are left out."""
  finite = [(row["steps"], row[column]) for row in rows if math.isfinite(row[column])]
  windows = (finite[max(0, end - WINDOW) : end] for end in range(1, len(finite) + 1))
  return [(window[-1][0], statistics.fmean(value for _, value in window)) for window in windows]


def pace(rows: Rows, kept: Rows, column: str, *, least: bool) -> float:
  """Return the steps after which the kept rows had got as far as the last row, over the steps of that row.

  It is infinite if they never had. least: whether more of the column is better.
  """
  sign = 1 if least else -1
  steps, now = smooth(rows, column)[-1]
  reached = (then for then, value in smooth(kept, column) if sign * value >= sign * now)
  return next(reached, math.inf) / steps


def at(rows: Rows, column: str, steps: float) -> float:
  """Return the smoothed column in the row nearest to a number of steps."""
  return min(smooth(rows, column), key=lambda each: abs(each[0] - steps))[1]


def compare(curve: cases.Curve, rows: Rows, kept: Rows) -> list[str]:
  """Return a row of the table: task, steps, column, its value in the kept curve and now, and the pace."""
  column, least = judged(curve)
  steps, now = smooth(rows, column)[-1]
  return [
    f"`{curve.task}`",
    f"{steps:,.0f}",
    column.replace("_", " "),
    text(at(kept, column, steps)),
    text(now),
    f"{pace(rows, kept, column, least=least):.2g}",
  ]


def train(curve: cases.Curve, words: list[str]) -> Path:
  """Train the first seed of a curve and return the run folder; the last of equal keys counts."""
  folder = ROOT / "runs" / "regression" / curve.task
  shutil.rmtree(folder, ignore_errors=True)
  own = [f"task={curve.task}", f"seed={curve.seeds[0]}", f"run_dir={folder}"]
  settings = dict(word.split("=", 1) for word in (f"max_steps={STEPS}", *curve.words, *words))
  own += [f"{key}={value}" for key, value in settings.items()]
  subprocess.run([sys.executable, "train.py", *own], cwd=ROOT, check=True, stdout=sys.stderr)
  return folder


def run(words: list[str]) -> bool:
  """Train the named tasks or read their runs, print the table, and return whether none is behind."""
  known = {curve.task: curve for curve in cases.CURVES if curves.read(curve)}
  names = [word for word in words if "=" not in word]
  if not names or not known.keys() >= {*names}:
    sys.exit(f"name tasks that have a curve, of: {', '.join(known)}")
  settings = [word for word in words if "=" in word and not word.startswith("runs=")]
  folders = [Path(path) for word in words if word.startswith("runs=") for path in word[5:].split(",")]
  table, paces = [["task", "steps", "judged by", "kept curve", "now", "pace"]], []
  for index, curve in enumerate(known[name] for name in names):
    kept = curves.read(curve)[0]
    rows = curves.rows_of(curve, folders[index] if folders else train(curve, settings))
    table.append(compare(curve, rows, kept))
    column, least = judged(curve)
    paces.append(pace(rows, kept, column, least=least))
  print(markdown(table))
  return min(paces) >= BEHIND


if __name__ == "__main__":
  sys.exit(not run(sys.argv[1:]))
