"""Log of a run: console, TensorBoard, metrics.csv and summary.json.

Every rank takes part in the sums; only the main rank writes. Nothing else reads from the device in training.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TextIO, cast

import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from gpurobot.config import TrainConfig, to_dict
from gpurobot.device.usage import Usage
from gpurobot.learn.algorithm import Algorithm
from gpurobot.learn.finite import describe
from gpurobot.run import csv_log
from gpurobot.run.divergence_dumps import DivergenceDumps
from gpurobot.run.files import rewrite
from gpurobot.run.health import Health, symptoms_of
from gpurobot.run.output import Output, tell
from gpurobot.run.profile import ITERATIONS, Profile
from gpurobot.run.tensorboard import TensorBoardLog
from gpurobot.run.video_recorder import VideoRecorder

PARTS = ("physics", "task", "policy", "update")  # parts of an iteration in the console table
COLUMNS = (  # key, heading, format
  ("iteration", "iter", "6d"),
  ("steps", "steps", "12,d"),
  ("seconds", "time s", "7.1f"),
  ("steps_per_second", "steps/s", "10,.0f"),
  *((f"time/{part}", part, "7.0%") for part in PARTS),
  ("return", "return", "9.2f"),
  ("length", "length", "7.1f"),
  ("kl", "KL", "8.4f"),
  ("entropy", "entropy", "8.2f"),
  ("value_loss", "v loss", "8.4f"),
  ("learning_rate", "rate", "9.2e"),
)
EPISODES, PPO_ONLY = ("return", "length"), ("kl",)  # columns that may have no number
HEADING_EVERY = 25  # lines


class Log:
  """Log of a run, one row per `log_every` iterations."""

  def __init__(self, config: TrainConfig, learner: Algorithm, folder: Path, seconds: float = 0.0) -> None:
    """Open the files of the run folder; `seconds`: training time before a resume."""
    self.config, self.learner, self.folder = config, learner, folder
    self.main = learner.world.main
    self.seconds_before, self.started = seconds, time.monotonic()
    self.last_row: dict[str, float] = {}
    self.last_return: float | None = None  # mean over the episodes of the last interval with an ended one
    self.reached: dict[str, float] = {}  # level of the mean return -> seconds of training
    self.unread = False  # whether the reader of standard output has left, as `| head` does
    self.warnings: list[str] = []
    self._health = Health(symptoms_of(config))
    self._usage = Usage(learner.device)
    self._dumps = DivergenceDumps(config, learner, folder)
    self._disk_is_full = self._told_nonfinite = False
    self._profile = Profile(learner, folder) if config.profile and self.main else None
    self._lines = 0
    self._written = learner.iteration  # the iteration of the last row
    self._last = self._counts()
    if self.main:
      self._open()

  def _open(self) -> None:
    self.folder.mkdir(parents=True, exist_ok=True)
    self._forget_later_rows()
    plain = to_dict(self.config)
    self._tensorboard = TensorBoardLog(self.folder, self.learner.steps)
    self._tensorboard.write_config(plain, self.learner.steps)
    self._recorder = VideoRecorder(self.config, self.learner, self.folder, self._tensorboard)
    self._write_json("config.json", plain)
    stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")  # it may be closed
    output = Output(stdout, self._note_output_failure)
    self.console = Console(file=cast("TextIO", output), highlight=False, markup=False, emoji=False)
    self.console.print(self.learner.describe(), soft_wrap=True)
    name = TextColumn("{task.description}", markup=False)
    bar = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn(), TimeRemainingColumn())
    self.progress = Progress(name, *bar, console=self.console, transient=True)
    self.progress.disable = not self.console.is_terminal
    self.bar = self.progress.add_task(self.config.task, total=1.0 if self._limits() else None)
    self.progress.start()
    left_out = getattr(self.learner.env, "left_out", ())  # environments of other engines know no such thing
    self.warn([f"not simulated: {part}" for part in left_out])

  def _note_output_failure(self, error: OSError) -> None:
    """Warn on standard error and in the summary that standard output fails."""
    self.unread = isinstance(error, BrokenPipeError)
    what = f"standard output could not be written ({error}); "
    warning = what + ("training saves a checkpoint and ends" if self.unread else "training goes on")
    self.warnings.append(warning)
    tell(f"warning: {warning}")

  def _forget_later_rows(self) -> None:
    """Cut metrics.csv back to the resumed checkpoint, and read from it the levels reached so far."""
    for row in csv_log.cut(self._table, self.learner.steps, "return", "seconds"):
      self._note_return(float(row["return"]), float(row["seconds"]))

  @property
  def _table(self) -> Path:
    return self.folder / "metrics.csv"

  def _write_json(self, name: str, content: dict[str, Any]) -> None:
    with rewrite(self.folder / name) as file:
      file.write((json.dumps(content, indent=2) + "\n").encode())

  def _keep(self, write: Callable[..., None], *content: Any) -> None:
    """Write to the disk; if that fails, warn once and go on."""
    try:
      write(*content)
    except OSError as error:
      warning = f"the log could not be written ({error}); training goes on, but the log has a gap"
      self.warn([] if self._disk_is_full else [warning])
      self._disk_is_full = True

  @property
  def seconds(self) -> float:
    """Training time so far [s], including that before a resume."""
    return self.seconds_before + time.monotonic() - self.started

  def _limits(self) -> list[tuple[float, float]]:
    """Return (current value, limit) for each limit that is set."""
    config = self.config
    ends = (
      (self.learner.iteration, config.max_iterations),
      (self.learner.steps, config.max_steps),
      (self.seconds, config.max_seconds),
    )
    return [(now, end) for now, end in ends if end is not None]

  @property
  def finished(self) -> bool:
    """Whether a limit is reached, by this rank's clock."""
    return any(now >= end for now, end in self._limits())

  def step(self) -> None:
    """Log a finished iteration; every rank calls."""
    if self.main:
      done = max((now / max(end, 1e-9) for now, end in self._limits()), default=None)
      self.progress.update(self.bar, completed=done)
      self.warn(self._recorder.step())
    if self.learner.iteration % self.config.log_every == 0:
      self.write()
    if self._profile:
      self._keep(self._write_profile, self._profile)

  def _write_profile(self, profile: Profile) -> None:
    table = profile.step()
    if table:
      self.console.print(table, soft_wrap=True)

  def write(self) -> None:
    """Read the statistics from the device and write a row; every rank calls."""
    report = self.learner.report()
    numbers = torch.stack([value.detach().double().squeeze() for value in report.values()]).tolist()
    self._keep(self._dumps.write)
    self._written = self.learner.iteration
    if not self.main:
      return
    steps, seconds = self.learner.steps, self.seconds
    row = {"iteration": self.learner.iteration, "steps": steps, "seconds": seconds}
    row |= self._speed() | dict(zip(report, numbers, strict=True)) | self._usage.read()
    self._warn_of_nonfinite(row.get("nonfinite_samples", 0), int(row.pop("nonfinite_source", -1)))
    self.last_row = row
    self._note_return(row["return"], seconds)
    self._write_line(row)
    self._keep(csv_log.append, self._table, row)
    self._keep(self._tensorboard.write, row, steps)
    self.warn(self._health.check(row) + self._dumps.tell(row.get("nonfinite", 0)))

  def _warn_of_nonfinite(self, count: float, source: int) -> None:
    """Warn once of samples that had to be left out, and name where the first came from."""
    if count and not self._told_nonfinite:
      self._told_nonfinite = True
      what = "a reward" if source < 0 else f"an observation, {describe(source, self.learner.env)},"
      left_out = f"{count:.0f} sample(s) left out: {what} was not finite; look where the task computes it"
      self.warn([left_out])

  def _counts(self) -> dict[str, float]:
    """Return cumulative counts: steps, seconds, iterations, collectives, and seconds of each part by name."""
    learner = self.learner
    counts = {"steps": learner.steps, "seconds": self.seconds, "iterations": learner.iteration}
    counts["collectives"] = learner.world.collectives
    for piece, seconds in learner.clock.seconds().items():
      part = piece.partition("/")[0]
      counts[part] = counts.get(part, 0.0) + seconds
    return counts

  def _speed(self) -> dict[str, float]:
    """Return environment steps per second and shares of the time since the last call."""
    counts, before = self._counts(), self._last
    self._last = counts
    parts = {name: count - before.get(name, 0.0) for name, count in counts.items()}
    steps, seconds, iterations, collectives = (
      parts.pop(name) for name in ("steps", "seconds", "iterations", "collectives")
    )
    speed = {"steps_per_second": steps / seconds, "collectives": collectives / max(iterations, 1)}
    for part, spent in parts.items():
      speed[f"time/{part}"] = spent / seconds
      speed[f"steps_per_second/{part}"] = steps / max(spent, 1e-9)
    return speed

  def warn(self, warnings: list[str]) -> None:
    """Print warnings and keep them for the summary, on the main rank."""
    self.warnings += warnings
    for warning in warnings if self.main else []:
      self.console.print(f"warning: {warning}", style="yellow", soft_wrap=True)

  def _note_return(self, value: float, seconds: float) -> None:
    """Note when the mean return first came to each level of one digit (..., 900, 1000, 2000, ...)."""
    if math.isfinite(value):
      self.last_return = value
    if value > 0:
      digits = math.floor(math.log10(value))
      for exponent in (digits - 1, digits):
        for digit in range(1, 10):
          if digit * 10.0**exponent <= value:
            self.reached.setdefault(f"{digit * 10.0**exponent:g}", seconds)

  def _write_line(self, row: dict[str, float]) -> None:
    """Print one line of the table, with a heading every HEADING_EVERY lines."""
    if self._lines % HEADING_EVERY == 0:
      widths = [len(format(0, spec)) for _, _, spec in COLUMNS]
      heads = [f"{head:>{width}}" for (_, head, _), width in zip(COLUMNS, widths, strict=True)]
      self.console.print(" ".join(heads), style="bold", soft_wrap=True)
    self._lines += 1
    known = dict.fromkeys(PPO_ONLY, math.nan) | row
    self.console.print(
      " ".join(_cell(key, known.get(key, 0), spec) for key, _, spec in COLUMNS), soft_wrap=True
    )

  def __enter__(self) -> Self:
    return self

  def __exit__(self, *_: object) -> None:
    """Restore the terminal, also after an error."""
    if self.main:
      self.progress.stop()

  def close(self) -> None:
    """Write summary.json and close the files; every rank calls."""
    if self.learner.iteration > self._written:
      self.write()
    if not self.main:
      return
    if self._profile and not self._profile.done:
      self.warn([f"no profile was written: profile=true needs {ITERATIONS} iterations"])
    row, seconds = self.last_row, self.seconds
    self.warn(self._recorder.close())  # it may wait
    self._keep(self._tensorboard.close)
    summary = {
      **{key: getattr(self.config, key) for key in ("task", "seed", "num_envs")},
      "iterations": self.learner.iteration,
      "steps": self.learner.steps,
      "seconds": seconds,
      "steps_per_second": self.learner.steps / seconds,
      "return": self.last_return,
      "length": row.get("length"),
      "reached_seconds": self.reached,
      "warnings": self.warnings,
      "training": self.learner.describe(),
    }
    self._keep(self._write_json, "summary.json", summary)
    reached = "no episode ended" if self.last_return is None else f"return {self.last_return:.2f}"
    self.console.print(
      f"{self.folder}: {reached}, {self.learner.steps:,} steps in {seconds:.1f} s", soft_wrap=True
    )


def _cell(key: str, value: float, spec: str) -> str:
  """Return a number of the table; a dash where no episode has ended, or where the algorithm has none."""
  if key in (*EPISODES, *PPO_ONLY) and math.isnan(value):
    return f"{'-':>{len(format(0, spec))}}"
  return format(value, spec)
