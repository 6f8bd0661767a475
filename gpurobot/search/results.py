"""Results of a search: figures of each setting over its seeds, as a table and as files."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from gpurobot.search.launch import show
from gpurobot.search.trial import Trial

RESAMPLES = 10_000  # resamples of the bootstrap
COLUMNS = ("setting", "runs", "missing", "trained")  # of results.csv, before the figures
Numbers = NDArray[np.float64]


def figures(metric: str) -> tuple[str, ...]:
  """Return the names of a setting's figures, for the metric that compares the settings."""
  return (metric, f"{metric}_low", f"{metric}_high", "steps_per_second", "seconds_to_level")


def interquartile_mean(values: Numbers) -> Numbers:
  """Return the mean over the last axis of `values` [..., n], without its lowest and highest quarter [...]."""
  count = values.shape[-1]
  return np.sort(values, axis=-1)[..., count // 4 : count - count // 4].mean(axis=-1)


def bootstrap(values: Numbers) -> tuple[float, float]:
  """Return the 95 % interval of the interquartile mean of `values` [n].

  It is a percentile bootstrap (Agarwal et al. 2021, arXiv 2108.13264).
  """
  drawn = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
  low, high = np.percentile(interquartile_mean(values[drawn]), [2.5, 97.5])
  return float(low), float(high)


def compare(trials: Sequence[Trial], metric: str) -> list[dict[str, Any]]:
  """Return the figures of each setting over its seeds; the bootstrap resamples the seeds of one setting.

  "trained" is the part of its limits that a setting was given.
  """
  groups: dict[str, list[Trial]] = {}
  for trial in trials:
    groups.setdefault(" ".join(trial.setting) or f"task={trial.config.task}", []).append(trial)
  rows = []
  for setting, group in groups.items():
    results = [trial.result() for trial in group if trial.is_finished()]
    results = [result for result in results if result[metric] is not None]  # no episode ended
    row = {"setting": setting, "runs": len(results), "missing": len(group) - len(results)}
    row |= {"trained": float(group[0].part)}
    row |= summarize(results, metric) if results else dict.fromkeys(figures(metric))
    rows.append(row | {"results": results})
  return rows


def summarize(results: list[dict[str, Any]], metric: str) -> dict[str, float | None]:
  """Return the figures over runs; the time is None if a run of the middle half never reached the level."""
  columns = (metric, "steps_per_second", "seconds_to_level")
  values, speeds, times = (np.array([run[name] for run in results], dtype=np.float64) for name in columns)
  seconds = float(interquartile_mean(np.nan_to_num(times, nan=np.inf)))
  middle, reached = float(interquartile_mean(values)), seconds if np.isfinite(seconds) else None
  found = (middle, *bootstrap(values), float(speeds.mean()), reached)
  return dict(zip(figures(metric), found, strict=True))


def report(rows: list[dict[str, Any]], metric: str, folder: Path, console: Console) -> None:
  """Write results.csv (a row per setting) and results.json (with every run), and print a table."""
  folder.mkdir(parents=True, exist_ok=True)
  (folder / "results.json").write_text(json.dumps(rows, indent=2) + "\n")
  with (folder / "results.csv").open("w", newline="") as file:
    writer = csv.DictWriter(file, (*COLUMNS, *figures(metric)), extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
  table = Table("setting", title="interquartile means over seeds with 95 % intervals")
  pruned = any(row["trained"] < 1 for row in rows)
  for heading in ("runs", *(["trained"] if pruned else []), metric, "interval", "steps/s", "s to level"):
    table.add_column(heading, justify="right")
  for row in rows:
    middle, low, high, speed, seconds = (show(row[name]) for name in figures(metric))
    runs = f"{row['runs']} of {row['runs'] + row['missing']}"
    part = [f"{row['trained']:.0%}"] if pruned else []
    table.add_row(row["setting"], runs, *part, middle, f"{low} ... {high}", speed, seconds)
  console.print(table)
