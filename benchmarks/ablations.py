"""Ablations of single settings over several seeds, saved as docs/ablations/<name>.csv and .png.

`python -m benchmarks.ablations [name ...]` runs the named ablations (default: all), two single-threaded
trainings at a time. It prints the interquartile mean of the last return of each setting, with its 95 %
confidence interval.
"""

import csv
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from benchmarks import cases
from benchmarks.report import line
from gpurobot import sweep
from gpurobot.run.interrupt import Interrupt
from gpurobot.search.launch import execute
from gpurobot.search.results import bootstrap, interquartile_mean
from gpurobot.search.trial import Trial

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "ablations"
COLUMNS = ("setting", "seed", "steps", "seconds", "return")
Row = dict[str, str]


def train(ablation: cases.Ablation) -> list[Trial]:
  """Run the trainings that are not finished; return all runs."""
  folder = f"folder={ROOT / 'runs' / 'ablations' / ablation.name}"
  settings, runs = sweep.plan([folder, "jobs=2", *ablation.words])
  execute(runs, settings.jobs, lambda text: print(text, file=sys.stderr), Interrupt())
  return runs


def rows_of(run: Trial) -> list[Row]:
  """Return the rows of a run's log that have a return, reduced to COLUMNS."""
  with (run.folder / "metrics.csv").open() as file:
    rows = [row for row in csv.DictReader(file) if row["return"] != "nan"]
  kept = {"setting": " ".join(run.setting), "seed": str(run.config.seed)}
  return [kept | {name: f"{float(row[name]):.5g}" for name in COLUMNS[2:]} for row in rows]


def write(rows: list[Row], path: Path) -> None:
  """Write rows as CSV."""
  path.parent.mkdir(parents=True, exist_ok=True)
  with path.open("w", newline="") as file:
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def read(name: str) -> list[Row]:
  """Return the saved rows of an ablation; empty if it was never run."""
  path = FOLDER / f"{name}.csv"
  if not path.exists():
    return []
  with path.open(newline="") as file:
    return list(csv.DictReader(file))


def groups(rows: list[Row]) -> dict[str, list[list[Row]]]:
  """Return the rows by setting and seed."""
  settings = dict.fromkeys(row["setting"] for row in rows)
  return {
    setting: [
      [row for row in rows if row["setting"] == setting and row["seed"] == seed]
      for seed in dict.fromkeys(row["seed"] for row in rows if row["setting"] == setting)
    ]
    for setting in settings
  }


def draw(ablation: cases.Ablation, rows: list[Row], path: Path) -> None:
  """Draw the mean return of each setting over environment steps, with the range over its seeds."""
  mpl.use("agg")
  settings = groups(rows)
  panels = dict.fromkeys(ablation.panel(setting) for setting in settings)
  figure, axes = plt.subplots(
    1, len(panels), figsize=(5 * len(panels), 4), sharey=True, layout="constrained", squeeze=False
  )
  for panel, ax in zip(panels, axes[0], strict=True):
    for setting, seeds in settings.items():
      if ablation.panel(setting) == panel:
        most = min(float(seed[-1]["steps"]) for seed in seeds)
        steps = np.linspace(0, most, 100)
        curves = [
          np.interp(steps, *np.array([(row["steps"], row["return"]) for row in seed], float).T)
          for seed in seeds
        ]
        (drawn,) = ax.plot(steps / 1e6, np.mean(curves, axis=0), label=ablation.label(setting))
        ax.fill_between(
          steps / 1e6,
          np.min(curves, axis=0),
          np.max(curves, axis=0),
          alpha=0.2,
          linewidth=0,
          color=drawn.get_color(),
        )
    ax.set(title=panel or ablation.name, xlabel="environment steps [million]", ylabel="mean return")
    ax.grid(alpha=0.3)
    ax.legend()
  figure.savefig(path, dpi=80, metadata={"Software": None})
  plt.close(figure)


def summary(rows: list[Row]) -> dict[str, tuple[float, float, float, float]]:
  """Return statistics of each setting over its seeds.

  They are the interquartile mean of the last returns, the lower and the upper end of its 95 % confidence
  interval, and the interquartile mean of the returns averaged over the environment steps. This average is
  high if returns rise early.
  """
  figures = {}
  for setting, seeds in groups(rows).items():
    last = np.array([float(seed[-1]["return"]) for seed in seeds])
    average = np.array([_average(seed) for seed in seeds])
    figures[setting] = (
      interquartile_mean(last).item(),
      *bootstrap(last),
      interquartile_mean(average).item(),
    )
  return figures


def _average(seed: list[Row]) -> float:
  """Return the mean return of a run over its steps, starting at the first row."""
  steps, returns = np.array([(row["steps"], row["return"]) for row in seed], float).T
  return float(np.trapezoid(returns, steps) / np.ptp(steps)) if len(seed) > 1 else float(returns[0])


def report(ablation: cases.Ablation, rows: list[Row]) -> None:
  """Print the statistics of each setting."""
  for setting, figures in summary(rows).items():
    for name, value in zip(("return", "low", "high", "average"), figures, strict=True):
      line(f"ablation.{ablation.name}.{setting.replace(' ', ',')}.{name}", value)


def run(names: list[str]) -> None:
  """Run, save, draw and report the named ablations, or all."""
  for ablation in cases.ABLATIONS:
    if not names or ablation.name in names:
      rows = [row for run in train(ablation) for row in rows_of(run)]
      write(rows, FOLDER / f"{ablation.name}.csv")
      draw(ablation, rows, FOLDER / f"{ablation.name}.png")
      report(ablation, rows)


if __name__ == "__main__":
  run(sys.argv[1:])
