"""Learning curves over seeds, saved as docs/curves/<task>.csv and .png.

`python -m benchmarks.learning.curves task [key=value ...]` trains the seeds of a task, one after another.
Curves of another `algorithm=...` than PPO are saved in docs/curves/<algorithm>/, unless it is the case's own.
`python -m benchmarks.learning.curves task runs=folder,...` uses existing runs. `keep=true` keeps the other
seeds of the curve. `python -m benchmarks.table` then updates the tables.
"""

import csv
import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks import cases
from gpurobot import plot
from gpurobot.device.process import usable_cores
from gpurobot.plot import Rows
from gpurobot.run import checkpoint

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "curves"
PPO = "ppo"
PROCESSOR = "processor_seconds"  # processor time so far, which other programs hardly disturb [s]
COLUMNS = (
  *("seed", "threads", "iteration", "steps", "seconds", PROCESSOR),
  *("steps_per_second", "return", "length"),
)
# Student's t for a 95 % confidence interval of the mean, by number of seeds.
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}


def curve_path(task: str, algorithm: str = PPO) -> Path:
  """Return the path of the curve of a task, without a suffix."""
  return FOLDER / ("" if algorithm == PPO else algorithm) / task.replace("/", "-")


def run_folder(task: str, seed: int, algorithm: str = PPO) -> Path:
  """Return the run folder of a seed."""
  return ROOT / "runs" / "curves" / ("" if algorithm == PPO else algorithm) / task / str(seed)


def columns(curve: cases.Curve) -> tuple[str, ...]:
  """Return the columns of the log that are saved."""
  return tuple(dict.fromkeys((*COLUMNS, *curve.columns)))


def train(curve: cases.Curve, words: list[str], algorithm: str) -> list[Path]:
  """Train each seed for the curve's seconds and return the run folders."""
  folders = [run_folder(curve.task, seed, algorithm) for seed in curve.seeds]
  for seed, folder in zip(curve.seeds, folders, strict=True):
    shutil.rmtree(folder, ignore_errors=True)
    own = [f"task={curve.task}", f"seed={seed}", f"max_seconds={curve.seconds}", f"run_dir={folder}"]
    subprocess.run(
      [sys.executable, "train.py", *own, *curve.words, *words], cwd=ROOT, check=True, stdout=sys.stderr
    )
  return folders


def rows_of(curve: cases.Curve, folder: Path) -> Rows:
  """Return the saved columns of a run's metrics.csv, without a student's rows with its teacher's help."""
  config = checkpoint.read(folder)["config"]
  threads = config["threads"] or len(os.sched_getaffinity(0))
  with (folder / "metrics.csv").open() as file:
    log = list(csv.DictReader(file))
  own: Rows = [{"seed": config["seed"], "threads": threads, PROCESSOR: used} for used in processor_time(log)]
  rows = [each | row for each, row in zip(own, log, strict=True) if not float(row.get("teacher_share", 0))]
  return [{name: float(row[name]) for name in columns(curve)} for row in rows]


def processor_time(log: Sequence[Mapping[str, str]]) -> list[float]:
  """Return the processor time of a training until each row of its log [s]; nan if a GPU trained it.

  It follows from the utilisation of this machine's cores, so the log must have been written here.
  """
  if any("memory/device" in row for row in log):
    return [math.nan] * len(log)
  ends = [0.0, *(float(row["seconds"]) for row in log)]
  times = zip(log, pairwise(ends), strict=True)
  used = (float(row["utilisation"]) * (end - start) for row, (start, end) in times)
  return [usable_cores() * seconds for seconds in accumulate(used)]


def write(rows: Rows, path: Path) -> None:
  """Write rows as CSV with five significant digits."""
  path.parent.mkdir(parents=True, exist_ok=True)
  with path.open("w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
      writer.writerow(
        [int(value) if value.is_integer() else f"{value:.5g}" for value in map(float, row.values())]
      )


def read(curve: cases.Curve, algorithm: str = PPO) -> list[Rows]:
  """Return the saved rows of each seed; empty if there are none."""
  path = curve_path(curve.task, algorithm).with_suffix(".csv")
  if not path.exists():
    return []
  with path.open() as file:
    rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
  seeds = dict.fromkeys(row["seed"] for row in rows)
  return [[row for row in rows if row["seed"] == seed] for seed in seeds]


def reached(rows: Rows, goal: cases.Goal, column: str = "seconds") -> float:
  """Return the training time at which a goal was first met [s], or another column; inf if it never was."""
  sign = 1 if goal.least else -1
  return min((row[column] for row in rows if sign * row[goal.column] >= sign * goal.level), default=math.inf)


def last(rows: Rows, column: str) -> float:
  """Return the last finite value of a column."""
  return [row[column] for row in rows if math.isfinite(row[column])][-1]


def interval(values: list[float]) -> float:
  """Return half the width of the 95 % confidence interval of the mean (Student's t); nan for one value."""
  if len(values) < 2:
    return math.nan
  return STUDENT[len(values)] * statistics.stdev(values) / math.sqrt(len(values))


def draw(curve: cases.Curve, runs: list[Rows], algorithm: str = PPO) -> None:
  """Draw means and ranges of the seeds over their training time, and the goals.

  It is the processor time if all runs have kept it: on a busy machine the same steps of two seeds may have no
  second of wall time in common.
  """
  count = len(curve.columns)
  kept = all(math.isfinite(row.get(PROCESSOR, math.nan)) for rows in runs for row in rows)
  x, words = (PROCESSOR, "processor time [s]") if kept else ("seconds", "training time [s]")
  figure = Figure(figsize=(7 if count == 1 else 4.5 * count, 4), layout="constrained")
  panels = figure.subplots(1, count, squeeze=False)[0]
  label = f"mean and range of {len(runs)} seeds" if len(runs) > 1 else "one seed"
  for axes, column in zip(panels, curve.columns, strict=True):
    plot.draw_curve(axes, label, runs, column, x)
    goals = [(goal.seconds, goal.level) for goal in curve.goals if goal.column == column]
    if goals:
      axes.scatter(
        *zip(*goals, strict=True), marker="_", s=300, color="black", label="level to reach by then"
      )
    title = curve.task if algorithm == PPO else f"{curve.task}, {algorithm.upper()}"
    axes.set(title=title, xlabel=words, ylabel=column.replace("_", " "), xlim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend()
  figure.savefig(curve_path(curve.task, algorithm).with_suffix(".png"), dpi=80, metadata={"Software": None})


def joined(kept: list[Rows], runs: list[Rows]) -> list[Rows]:
  """Return the runs of all seeds in their order; `runs` replace kept ones of the same seed.

  Columns that an older curve lacks are nan there.
  """
  by_seed = {rows[0]["seed"]: rows for rows in (*kept, *runs)}
  names = max((rows[0] for rows in by_seed.values()), key=len)
  filled = {
    seed: [{name: row.get(name, math.nan) for name in names} for row in rows]
    for seed, rows in by_seed.items()
  }
  return [filled[seed] for seed in sorted(filled)]


def run(words: list[str]) -> None:
  """Train a task or read its runs; save and draw the curves."""
  known = {curve.task: curve for curve in cases.CURVES}
  if not words or words[0] not in known:
    sys.exit(f"name a task to train, one of: {', '.join(known)}")
  curve, given = known[words[0]], dict(word.split("=", 1) for word in words[1:])
  folders, keep = given.pop("runs", None), given.pop("keep", "false")
  if keep not in ("true", "false"):
    sys.exit(f"keep={keep}: write true or false")
  algorithm = given.get("algorithm", PPO)
  if folders:
    trained = [Path(folder) for folder in folders.split(",")]
  else:
    trained = train(curve, [f"{key}={value}" for key, value in given.items()], algorithm)
  runs = joined(
    read(curve, algorithm) if keep == "true" else [], [rows_of(curve, folder) for folder in trained]
  )
  write([row for rows in runs for row in rows], curve_path(curve.task, algorithm).with_suffix(".csv"))
  draw(curve, runs, algorithm)


if __name__ == "__main__":
  run(sys.argv[1:])
