"""Learning curves over seeds: train, keep the rows in docs/curves/<task>.csv, draw docs/curves/<task>.png.

`python -m benchmarks.curves [task ...]` trains each seed of the named tasks (default: all) one after another.
"""

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray

from benchmarks import cases
from benchmarks.report import line

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "curves"
COLUMNS = ("seed", "iteration", "steps", "seconds", "steps_per_second", "return", "length")
Rows = list[dict[str, float]]


def train(curve: cases.Curve, seed: int) -> Rows:
  """Train one seed for the curve's seconds and return the rows of its metrics.csv."""
  folder = ROOT / "runs" / "curves" / curve.task / str(seed)
  shutil.rmtree(folder, ignore_errors=True)
  words = [f"task={curve.task}", f"seed={seed}", f"max_seconds={curve.seconds}", f"run_dir={folder}"]
  subprocess.run([sys.executable, "train.py", *words], cwd=ROOT, check=True, stdout=sys.stderr)
  with (folder / "metrics.csv").open() as file:
    rows = [{"seed": seed, **row} for row in csv.DictReader(file)]
  return [{name: float(row[name]) for name in COLUMNS} for row in rows]


def write(rows: Rows, path: Path) -> None:
  """Write rows as CSV with five significant digits."""
  path.parent.mkdir(parents=True, exist_ok=True)
  with path.open("w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
      writer.writerow([int(row[name]) if row[name].is_integer() else f"{row[name]:.5g}" for name in COLUMNS])


def reached(rows: Rows, level: float) -> float:
  """Return the seconds of training at which the mean return first came to a level; inf if it never did."""
  return min((row["seconds"] for row in rows if row["return"] >= level), default=np.inf)


def report(curve: cases.Curve, runs: list[Rows]) -> None:
  """Print when each seed reached each level, its last return and its speed."""
  for seed, rows in zip(curve.seeds, runs, strict=True):
    for _, level in curve.levels:
      line(f"curve.{curve.task}.seed{seed}.seconds_to_{level:g}", reached(rows, level))
    known = [row["return"] for row in rows if np.isfinite(row["return"])]
    line(f"curve.{curve.task}.seed{seed}.return", known[-1])
    line(f"curve.{curve.task}.seed{seed}.steps_per_second", rows[-1]["steps"] / rows[-1]["seconds"])


def band(runs: list[Rows], seconds: float) -> tuple[NDArray[np.float64], ...]:
  """Return times [s] on a common grid and the least, mean and largest return of the seeds at each."""
  times = np.linspace(0, seconds, 200)
  known = [[(row["seconds"], row["return"]) for row in rows if np.isfinite(row["return"])] for rows in runs]
  returns = np.stack([np.interp(times, *np.array(pairs).T) for pairs in known])
  return times, returns.min(axis=0), returns.mean(axis=0), returns.max(axis=0)


def draw(curve: cases.Curve, runs: list[Rows], path: Path) -> None:
  """Draw the mean return over training time, the band of the seeds around it, and the levels to reach."""
  mpl.use("agg")
  figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
  times, low, mean, high = band(runs, curve.seconds)
  axes.fill_between(times, low, high, alpha=0.25, linewidth=0, label=f"range of {len(runs)} seeds")
  axes.plot(times, mean, label="mean")
  axes.scatter(
    *zip(*curve.levels, strict=True), marker="_", s=300, color="black", label="level to reach by then"
  )
  axes.set(title=curve.task, xlabel="training time [s]", ylabel="mean return", xlim=(0, None))
  axes.grid(alpha=0.3)
  axes.legend(loc="lower right")
  figure.savefig(path, dpi=110, metadata={"Software": None})
  plt.close(figure)


def run(names: list[str]) -> None:
  """Train, write and draw the curves of the named tasks."""
  for curve in cases.CURVES:
    if not names or curve.task in names:
      runs = [train(curve, seed) for seed in curve.seeds]
      write([row for rows in runs for row in rows], FOLDER / f"{curve.task}.csv")
      draw(curve, runs, FOLDER / f"{curve.task}.png")
      report(curve, runs)


if __name__ == "__main__":
  run(sys.argv[1:])
