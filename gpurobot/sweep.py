"""Sweep over seeds and settings: python -m gpurobot.sweep task=ant seed=0,1,2 ppo.lr=1e-4,3e-4.

Every key of train.py takes one value or several, separated by commas (a list in brackets is one value). Each
combination is one run of train.py in its own folder. Started again, the sweep continues where it stopped.
"""

import csv
import dataclasses
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import tasks
from gpurobot import cli
from gpurobot.config import LIMITS, ConfigError, TrainConfig, assign, leaves, option, pairs, to_dict
from gpurobot.device.distributed import World
from gpurobot.run import checkpoint
from gpurobot.run.csv_log import read
from gpurobot.run.interrupt import Interrupt

PROGRAM = Path(__file__).resolve().parents[1] / "train.py"
OUTPUT = "output.txt"  # console output of a run, in its folder
PLACES = ("run_dir", "resume", "threads", "debug")  # settings that may differ between two starts of a run
RESAMPLES = 10_000  # resamples of the bootstrap
FIGURES = ("return", "return_low", "return_high", "steps_per_second", "seconds_to_level")
COLUMNS = ("setting", "runs", "missing", *FIGURES)  # columns of results.csv
HELP = """
Every key of train.py is allowed too, with one value or several: seed=0,1,2 ppo.hidden=[64,64],[256,128]
"""
Numbers = NDArray[np.float64]
POLL = 0.1  # time between polls of the running processes [s]


@dataclasses.dataclass
class Sweep:
  """Sweep over seeds and settings."""

  folder: str = option("runs/sweep/<task>", "folder of the results and of the run folders")
  jobs: int = option(1, "number of runs at a time; they divide the cores among them", low=1)
  level: float | None = option(None, "mean return; the time until runs first reach it is reported")


@dataclasses.dataclass(frozen=True)
class SweepRun:
  """One run: the arguments that vary (without the seed), all arguments, and the parsed configuration."""

  setting: tuple[str, ...]
  words: tuple[str, ...]
  config: TrainConfig

  @property
  def name(self) -> str:
    """The arguments that distinguish this run from the others."""
    return " ".join([*self.setting, f"seed={self.config.seed}"])

  @property
  def folder(self) -> Path:
    """The run folder."""
    return Path(str(self.config.run_dir))

  def is_finished(self) -> bool:
    """Return whether the run has reached one of its limits (an interrupted run has a summary too)."""
    path = self.folder / "summary.json"
    if not path.exists():
      return False
    summary = json.loads(path.read_text())
    reached = [(summary[limit.removeprefix("max_")], getattr(self.config, limit)) for limit in LIMITS]
    return any(end is not None and now >= end for now, end in reached)

  def command(self) -> list[str]:
    """Return the command that starts the run, or resumes it from its checkpoint."""
    resume = [f"resume={self.folder}"] if checkpoint.exists(self.folder) else []
    return [sys.executable, str(PROGRAM), *resume, *self.words]

  def result(self, level: float | None) -> dict[str, Any]:
    """Return the figures of a finished run."""
    summary = json.loads((self.folder / "summary.json").read_text())
    figures = {name: summary[name] for name in ("seed", "return", "steps", "seconds", "steps_per_second")}
    return figures | {"seconds_to_level": self._seconds_to(level)}

  def _seconds_to(self, level: float | None) -> float | None:
    """Return the training time [s] until the mean return first reached a level; None if it never did."""
    if level is None:
      return None
    rows = read(self.folder / "metrics.csv")
    return next((float(row["seconds"]) for row in rows if float(row["return"]) >= level), None)


def alternatives(text: str) -> list[str]:
  """Return the distinct values of a comma-separated list; commas within brackets do not separate."""
  return list(dict.fromkeys(re.split(r",(?![^\[]*\])", text)))


def plan(argv: list[str]) -> tuple[Sweep, list[SweepRun]]:
  """Return the sweep's settings and its runs; raise ConfigError on a bad argument.

  A combination that train.py rejects ends the sweep with the same message.
  """
  given = dict(word.partition("=")[::2] for word in argv)
  names = alternatives(given.get("task", TrainConfig().task))
  known = [leaves(cli.parse([f"task={name}"], tasks.load, World())[0]) for name in names]
  own = leaves(Sweep())
  values = pairs(argv, dict.fromkeys(itertools.chain(own, *known)))
  settings = assign(Sweep(), {key: value for key, value in values.items() if key in own})
  settings.folder = settings.folder.replace("<task>", ",".join(Path(name).stem for name in names))
  if {"run_dir", "resume"} & set(values):
    raise ConfigError("a sweep sets run_dir and resume itself; write folder=<folder of the sweep>")
  grid = {key: alternatives(value) for key, value in values.items() if key not in own}
  grid.setdefault("seed", [str(TrainConfig().seed)])
  return settings, [make_run(grid, chosen, settings) for chosen in itertools.product(*grid.values())]


def make_run(grid: dict[str, list[str]], chosen: Iterable[str], settings: Sweep) -> SweepRun:
  """Return the run with the chosen value of each key; raise ConfigError if `check` rejects it."""
  words = {key: f"{key}={value}" for key, value in zip(grid, chosen, strict=True)}
  setting = tuple(word for key, word in words.items() if len(grid[key]) > 1 and key != "seed")
  parts = [",".join(setting), words["seed"]] if setting else [words["seed"]]
  folder = Path(settings.folder, *(re.sub(r"[^\w.,=+\[\]-]", "_", part) for part in parts))
  words["run_dir"] = f"run_dir={folder}"
  config, _ = cli.parse([*words.values()], tasks.load, World())
  check(config, folder)
  if settings.jobs > 1 and "threads" not in words:
    share = max(1, len(os.sched_getaffinity(0)) // settings.jobs)
    words["threads"] = f"threads={min(share, config.threads or share)}"
  return SweepRun(setting, tuple(words.values()), config)


def check(config: TrainConfig, folder: Path) -> None:
  """Raise ConfigError if a run would never end, or if its folder holds a run with other settings."""
  if all(getattr(config, limit) is None for limit in LIMITS):
    raise ConfigError(f"the runs of a sweep need a limit; set one of {', '.join(LIMITS)}")
  path = folder / "config.json"
  if path.exists():
    there, wanted = json.loads(path.read_text()), to_dict(config)
    other = [key for key in {**there, **wanted} if there.get(key) != wanted.get(key) and key not in PLACES]
    if other:
      raise ConfigError(f"'{folder}' holds a run with another {', '.join(other)}; choose another folder=")


def execute(runs: list[SweepRun], jobs: int, say: Callable[[str], None]) -> None:
  """Run all, `jobs` at a time, and report how each ended; an interrupt stops them all."""
  interrupt, interrupted = Interrupt(), False
  waiting, active = list(runs), list[tuple[SweepRun, subprocess.Popen[bytes]]]()
  while active or (waiting and not interrupted):
    while waiting and len(active) < jobs and not interrupted:
      run = waiting.pop(0)
      active.append((run, start(run)))
    time.sleep(POLL)
    if interrupt.requested and not interrupted:
      interrupted = True
      for _, process in active:
        process.terminate()  # it saves a checkpoint first
    for run, process in active:
      if process.poll() is not None:
        say(f"{run.name}: {'interrupted' if interrupted else ending(run, process.returncode)}")
    active = [(run, process) for run, process in active if process.returncode is None]


def start(run: SweepRun) -> subprocess.Popen[bytes]:
  """Start a run as a process whose output goes to its folder."""
  run.folder.mkdir(parents=True, exist_ok=True)
  with (run.folder / OUTPUT).open("ab") as file:
    return subprocess.Popen(run.command(), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)


def ending(run: SweepRun, status: int) -> str:
  """Return a line that says how the process of a run ended."""
  if not run.is_finished():
    *_, last = ["no output", *(run.folder / OUTPUT).read_text().splitlines()]
    return f"failed with status {status}: {last}"
  figures = run.result(level=None)
  return f"return {show(figures['return'])}, {figures['steps']:,} steps in {show(figures['seconds'])} s"


def show(value: float | None) -> str:
  """Return a figure as a formatted string."""
  return "-" if value is None else f"{value:,.5g}"


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


def compare(runs: list[SweepRun], level: float | None) -> list[dict[str, Any]]:
  """Return the figures of each setting over its seeds; the bootstrap resamples the seeds of one setting."""
  groups: dict[str, list[SweepRun]] = {}
  for run in runs:
    groups.setdefault(" ".join(run.setting) or f"task={run.config.task}", []).append(run)
  rows = []
  for setting, group in groups.items():
    results = [run.result(level) for run in group if run.is_finished()]
    results = [result for result in results if result["return"] is not None]  # no episode ended
    row = {"setting": setting, "runs": len(results), "missing": len(group) - len(results)}
    rows.append(row | (summarize(results) if results else dict.fromkeys(FIGURES)) | {"results": results})
  return rows


def summarize(results: list[dict[str, Any]]) -> dict[str, float | None]:
  """Return FIGURES over runs; the time is None if a run of the middle half never reached the level."""
  columns = ("return", "steps_per_second", "seconds_to_level")
  returns, speeds, times = (np.array([run[name] for run in results], dtype=np.float64) for name in columns)
  low, high = bootstrap(returns)
  seconds = float(interquartile_mean(np.nan_to_num(times, nan=np.inf)))
  return {
    "return": float(interquartile_mean(returns)),
    "return_low": low,
    "return_high": high,
    "steps_per_second": float(speeds.mean()),
    "seconds_to_level": seconds if np.isfinite(seconds) else None,
  }


def report(rows: list[dict[str, Any]], folder: Path, console: Console) -> None:
  """Write results.csv (a row per setting) and results.json (with every run), and print a table."""
  folder.mkdir(parents=True, exist_ok=True)
  (folder / "results.json").write_text(json.dumps(rows, indent=2) + "\n")
  with (folder / "results.csv").open("w", newline="") as file:
    writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
  table = Table("setting", title="interquartile means over seeds with 95 % intervals")
  for heading in ("runs", "return", "interval", "steps/s", "s to level"):
    table.add_column(heading, justify="right")
  for row in rows:
    middle, low, high, speed, seconds = (show(row[name]) for name in FIGURES)
    runs = f"{row['runs']} of {row['runs'] + row['missing']}"
    table.add_row(row["setting"], runs, middle, f"{low} ... {high}", speed, seconds)
  console.print(table)


def main(argv: list[str]) -> None:
  """Run the sweep given in `argv`, or print help."""
  if set(cli.HELP) & set(argv):
    print(cli.describe(Sweep(), "python -m gpurobot.sweep") + HELP)
    return
  with cli.user_errors(argv, World()):
    compete(*plan(argv))


def compete(settings: Sweep, runs: list[SweepRun]) -> None:
  """Run what is not finished yet, then compare all runs; exit with status 1 if a run failed."""
  console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 160)
  pending = [run for run in runs if not run.is_finished()]

  def say(text: str) -> None:
    console.print(text, soft_wrap=True)

  say(f"{len(runs)} runs in {settings.folder}, {len(runs) - len(pending)} of them already finished")
  execute(pending, settings.jobs, say)
  report(compare(runs, settings.level), Path(settings.folder), console)
  if not all(run.is_finished() for run in runs):
    raise SystemExit(1)


if __name__ == "__main__":
  main(sys.argv[1:])
