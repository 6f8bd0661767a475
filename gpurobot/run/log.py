"""Log of a run: console, metrics.csv, TensorBoard, W&B, MLflow and summary.json.

Every rank takes part in the sums; only the main rank writes. Nothing else reads from the device in training.
"""

import importlib
import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any, Self, TextIO, cast

import torch
from rich.console import Console

from gpurobot import extras
from gpurobot.device.usage import Usage
from gpurobot.learn.algorithm import Algorithm
from gpurobot.learn.finite import describe
from gpurobot.run import checkpoint, csv_log, summary
from gpurobot.run.best_policy import BestPolicy
from gpurobot.run.display import Display, Lines, PlainConsole, Progress
from gpurobot.run.divergence_dumps import DivergenceDumps
from gpurobot.run.files import rewrite
from gpurobot.run.health import Health, symptoms_of
from gpurobot.run.live_table import LiveTable
from gpurobot.run.logger import PATIENCE_FAILED, Guard, Logger, Loggers, NoAnswer
from gpurobot.run.output import Output, tell
from gpurobot.run.policy_images import PolicyImages
from gpurobot.run.profile import ITERATIONS, Profile
from gpurobot.run.returns import Returns
from gpurobot.run.video_recorder import VideoRecorder
from gpurobot.settings.config import ConfigError, ConsoleStyle, TrainConfig, to_dict

LOG = logging.getLogger(__name__)


class Log:
  """Log of a run, one row per `log_every` iterations."""

  def __init__(self, config: TrainConfig, learner: Algorithm, folder: Path, **before: float) -> None:
    """Open the files of the run folder and the loggers; `before`: the `state` that a run is resumed from.

    Raises ConfigError, on every rank, if a logger cannot start.
    """
    self.config, self.learner, self.folder = config, learner, folder
    self.main = learner.world.main
    self.seconds_before, self.started = before.get("seconds", 0.0), time.monotonic()
    # Environment steps at the last row. A checkpoint is saved before the row that ends a run, and a resumed
    # run does not keep that row; older checkpoints do not say where the last row is.
    self._logged = int(before.get("logged", learner.steps))
    self.last_row: dict[str, float] = {}
    self.returns = Returns()
    self.best = BestPolicy(config, learner, folder)
    self.unread = False  # whether the reader of standard output has left, as `| head` does
    self.warnings: list[str] = []
    self._health = Health(symptoms_of(config))
    self._usage = Usage(learner.device)
    self._dumps = DivergenceDumps(config, learner, folder)
    self._disk = Guard("the run folder")
    self._reported_nonfinite = False
    self._profile = Profile(learner, folder) if config.profile and self.main else None
    problem = self._open() if self.main else ""
    if problem := learner.world.broadcast_object(problem):
      raise ConfigError(problem)
    self.started = time.monotonic()
    self._first = self._reached()
    self._last = self._counts()
    if self.main:
      self.display.progress(self.progress)

  def _open(self) -> str:
    """Open the files and loggers of the main rank; return the mistake if that fails."""
    self.folder.mkdir(parents=True, exist_ok=True)
    settings, log = to_dict(self.config), self.folder / csv_log.NAME
    self._rows_before = log.read_bytes() if log.exists() else b""
    try:
      rows = csv_log.cut(log, self._logged, "return", "episodes", "seconds")
      for row in rows:
        mean, episodes, seconds = (float(row[name]) for name in ("return", "episodes", "seconds"))
        self.returns.add(mean, episodes, int(row["steps"]), seconds)
      loggers, silent = open_loggers(self.config, self.folder, self._logged)
      self._loggers = Loggers(loggers)
    except ValueError as error:
      return str(error)
    self._policy_images = PolicyImages(self.learner, self._loggers, self.config.log.images_every, len(rows))
    self._recorder = VideoRecorder(self.config, self.learner, self.folder, self._loggers)
    self._write_json("config.json", settings)
    stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")  # it may be closed
    output = Output(stdout, self._note_output_failure)
    console = PlainConsole(file=cast("TextIO", output), highlight=False, markup=False, emoji=False)
    self.display = open_display(self.config, self.folder, self.returns, console)
    self.display.tell(self.learner.describe())
    if _lacks_tensorboard():
      self.display.tell("no events for TensorBoard are written: pip install 'gpurobot[plot]'")
    self.warn([f"not simulated: {part}" for part in self.learner.env.left_out])
    self.warn(silent + self._loggers.write_config(settings))
    return ""

  def _note_output_failure(self, error: OSError) -> None:
    """Warn on standard error and in the summary that standard output fails."""
    self.unread = isinstance(error, BrokenPipeError)
    what = f"standard output could not be written ({error}); "
    warning = what + ("training saves a checkpoint and ends" if self.unread else "training goes on")
    self.warnings.append(warning)
    tell(f"warning: {warning}")

  def _write_json(self, name: str, content: dict[str, Any]) -> None:
    with rewrite(self.folder / name) as file:
      file.write((json.dumps(content, indent=2) + "\n").encode())

  @property
  def seconds(self) -> float:
    """Training time so far [s], including the time before a resume."""
    return self.seconds_before + time.monotonic() - self.started

  @property
  def state(self) -> dict[str, float]:
    """Training time so far [s] and environment steps at the last row, for a checkpoint."""
    return {"seconds": self.seconds, "logged": self._logged}

  def _reached(self) -> tuple[float, float, float]:
    """Return the iterations, environment steps and seconds so far."""
    return self.learner.iteration, self.learner.steps, self.seconds

  def _limits(self) -> list[tuple[float, float, float]]:
    """Return (value at the start of this program, current value, limit) for each limit that is set."""
    ends = (self.config.max_iterations, self.config.max_steps, self.config.max_seconds)
    found = zip(self._first, self._reached(), ends, strict=True)
    return [(first, now, end) for first, now, end in found if end is not None]

  @property
  def finished(self) -> bool:
    """Whether a limit is reached, by this rank's clock."""
    return any(now >= end for _, now, end in self._limits())

  @property
  def progress(self) -> Progress:
    """How far the training has come, and the time that is left if it goes on like that."""
    limits, (iteration, steps, seconds) = self._limits(), self._reached()
    done = max((now / max(end, 1e-9) for _, now, end in limits), default=None)
    spent = seconds - self.seconds_before
    left = [(end - now) * spent / (now - first) for first, now, end in limits if now > first]
    return Progress(int(iteration), int(steps), seconds, done, min(left, default=None))

  def step(self) -> None:
    """Log a finished iteration; every rank calls."""
    if self.main:
      self.display.progress(self.progress)
      self.warn(self._recorder.step())
    if self.learner.iteration % self.config.log_every == 0:
      self.write()
    if self._profile:
      self.warn(self._disk.call(self._write_profile, self._profile))

  def _write_profile(self, profile: Profile) -> None:
    table = profile.step()
    if table:
      self.display.tell(table)

  def write(self) -> None:
    """Read the statistics from the device and write a row; every rank calls."""
    report = self.learner.report()
    numbers = torch.stack([value.detach().double().squeeze() for value in report.values()]).tolist()
    self.warn(self._disk.call(self._dumps.write))
    self._logged = self.learner.steps
    if not self.main:
      return
    steps, seconds = self.learner.steps, self.seconds
    row = {"iteration": self.learner.iteration, "steps": steps, "seconds": seconds}
    row |= self._speed() | dict(zip(report, numbers, strict=True)) | self._usage.read()
    self._warn_of_nonfinite(row.get("nonfinite_samples", 0), int(row.pop("nonfinite_source", -1)))
    self.last_row = row
    self.returns.add(row["return"], row["episodes"], steps, seconds)
    self.best.offer(self.returns)
    self.display.write(row)
    self.warn(self._loggers.write(row) + self._policy_images.write())
    self.warn(self._health.check(row) + self._dumps.tell(row.get("nonfinite", 0)))

  def _warn_of_nonfinite(self, count: float, source: int) -> None:
    """Warn once of samples that were left out, and name the origin of the first."""
    if count and not self._reported_nonfinite:
      self._reported_nonfinite = True
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
    """Return environment steps per second and shares of the time since the last call.

    Parts that a CUDA graph joins have no time of their own, and are left out.
    """
    counts, before = self._counts(), self._last
    self._last = counts
    parts = {name: count - before.get(name, 0.0) for name, count in counts.items()}
    steps, seconds, iterations, collectives = (
      parts.pop(name) for name in ("steps", "seconds", "iterations", "collectives")
    )
    speed = {"steps_per_second": steps / seconds, "collectives": collectives / max(iterations, 1)}
    for part, spent in parts.items():
      if spent:
        speed[f"time/{part}"] = spent / seconds
        speed[f"steps_per_second/{part}"] = steps / spent
    return speed

  def warn(self, warnings: list[str]) -> None:
    """Print warnings and keep them for the summary, on the main rank."""
    self.warnings += warnings
    for warning in warnings if self.main else []:
      self.display.warn(warning)

  def __enter__(self) -> Self:
    return self

  def __exit__(self, *_: object) -> None:
    """Give the terminal back and close the loggers, also after an error."""
    if self.main:
      self.display.close()
      self.warn(self._loggers.close(failed=True))

  def _restore_rows(self) -> None:
    """Give the log the rows that it had: the row that ended the run is its end again."""
    with rewrite(self.folder / csv_log.NAME) as file:
      file.write(self._rows_before)

  def close(self) -> None:
    """Write summary.json, close the loggers and show the summary; every rank calls."""
    if self.learner.iteration == self._first[0]:  # nothing was left to do
      self.warn(self._disk.call(self._restore_rows) if self.main and self._rows_before else [])
    elif self.learner.steps > self._logged:
      self.write()
    if not self.main:
      return
    seconds = self.seconds  # what follows may wait
    if self._profile and not self._profile.done:
      self.warn([f"no profile was written: profile=true needs {ITERATIONS} iterations"])
    self.warn(self._recorder.close())
    self.warn(self.best.write())  # the last row may be it
    self.warn(self._loggers.write_checkpoints(checkpoint.kept(self.folder)))
    self.warn(self._loggers.close())
    found = summary.content(self.config, self.learner, seconds, self.folder, self.returns)
    found["warnings"] = self.warnings
    self.warn(self._disk.call(self._write_json, summary.FILE, found))
    self.display.close()
    self.display.tell("\n".join(summary.lines(self.config, found, self.last_row, self.returns, self.folder)))


def open_loggers(config: TrainConfig, folder: Path, steps: int) -> tuple[list[Logger], list[str]]:
  """Return the loggers of a run with its last row at `steps`, and a warning for each server that is silent.

  Raises ConfigError if one cannot start.
  """
  remote, silent = list[Logger](), list[str]()
  try:
    for name, kind in (("wandb", "WandbLog"), ("mlflow", "MlflowLog")):
      if project := getattr(config.log, name):
        with extras.require_extra(name):
          module = importlib.import_module(f"gpurobot.run.{name}_log")
        LOG.info("log.%s=%s starts a run; its server has %.0f s to answer", name, project, PATIENCE_FAILED)
        try:
          remote.append(getattr(module, kind)(project, folder, config.resume is not None))
        except NoAnswer as error:
          silent.append(f"log.{name}={project}: no answer ({error}); training goes on without it")
  except ConfigError:
    Loggers(remote).close(failed=True)
    raise
  local: list[Logger] = [csv_log.CsvLog(folder)]
  if not _lacks_tensorboard():
    from gpurobot.run.tensorboard import TensorBoardLog  # noqa: PLC0415 (an extra)

    local.append(TensorBoardLog(folder, steps))
  return [*local, *remote], silent


def _lacks_tensorboard() -> bool:
  return "tensorboard" in extras.missing("plot")


def open_display(config: TrainConfig, folder: Path, returns: Returns, console: Console) -> Display:
  """Return the display that the settings and the output ask for."""
  style = config.log.console
  if style is ConsoleStyle.none:
    return Display(console)
  if style is ConsoleStyle.auto and console.file.isatty() and console.is_interactive:
    return LiveTable(console, config.task, folder, returns)
  return Lines(console)
