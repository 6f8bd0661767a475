"""Launch of trials: as processes of this machine, several at a time."""

import subprocess
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

from gpurobot.device.process import python
from gpurobot.run import folder
from gpurobot.run.interrupt import Interrupt
from gpurobot.search.trial import OUTPUT, Trial

POLL = 0.1  # time between polls of the trials that run [s]
Say = Callable[[str], None]


class Process(Protocol):
  """A trial that runs, as `subprocess.Popen` is one."""

  def poll(self) -> int | None:
    """Return the exit status, or None while the trial runs."""

  def terminate(self) -> None:
    """Ask the trial to save a checkpoint and end."""


class Running:
  """Trial that another sweep, such as a killed one, has left running; a `Process` to wait for."""

  def __init__(self, trial: Trial) -> None:
    """Wait for the training in the trial's folder."""
    self._folder, self._given_up = trial.folder, False

  def poll(self) -> int | None:
    """Return 0 once it has ended, or the wait is over; None while it runs."""
    return 0 if self._given_up or not folder.owner(self._folder) else None

  def terminate(self) -> None:
    """Stop waiting: the trial is another sweep's."""
    self._given_up = True


class Launcher(StrEnum):
  """Where trials run."""

  local = "local"
  ray = "ray"


Start = Callable[[Trial], Process]


def start(trial: Trial) -> Process:
  """Start a trial as a process with its output in the trial's folder."""
  trial.folder.mkdir(parents=True, exist_ok=True)
  command, environment = python(*trial.command())
  with (trial.folder / OUTPUT).open("ab") as file:
    return subprocess.Popen(
      command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
    )


def execute(trials: Sequence[Trial], jobs: int, say: Say, interrupt: Interrupt, begin: Start = start) -> bool:
  """Run the trials that are not finished, `jobs` at a time, and say how each ended.

  Returns False if a signal has interrupted the sweep: it stops those that run, and starts no more.
  """
  stopped = False
  waiting = [trial for trial in trials if not trial.is_finished()]
  active: list[tuple[Trial, Process]] = []
  try:
    while active or (waiting and not interrupt.requested):
      while waiting and len(active) < jobs and not interrupt.requested:
        trial = waiting.pop(0)
        if owner := folder.owner(trial.folder):
          say(f"{trial.name}: {owner} still trains it; waiting for its end")
        active.append((trial, Running(trial) if owner else begin(trial)))
      time.sleep(POLL)
      if interrupt.requested and not stopped:
        stopped = True
        for _, process in active:
          process.terminate()
      ended = [(trial, process, process.poll()) for trial, process in active]
      active = [(trial, process) for trial, process, status in ended if status is None]
      for trial, process, status in ended:
        if status is None:
          continue
        if not stopped and goes_on(trial, process):
          waiting.insert(0, trial)
        else:
          say(f"{trial.name}: {'interrupted' if stopped else ending(trial, status)}")
  finally:  # an error, such as a metric that no log has, leaves no trial running
    for _, process in active:
      process.terminate()
  return not interrupt.requested


def goes_on(trial: Trial, process: Process) -> bool:
  """Return whether to continue a trial that is unfinished though its process has ended.

  The process was another sweep's, or another sweep's has locked the folder before ours.
  """
  return not trial.is_finished() and (isinstance(process, Running) or bool(folder.owner(trial.folder)))


def ending(trial: Trial, status: int) -> str:
  """Return a line that says how a trial ended."""
  if not trial.is_finished():
    *_, last = ["no output", *(trial.folder / OUTPUT).read_text().splitlines()]
    return f"failed with status {status}: {last}"
  figures, metric = trial.result(), trial.measure.metric
  return f"{metric} {show(figures[metric])}, {figures['steps']:,} steps in {show(figures['seconds'])} s"


def show(value: float | None) -> str:
  """Return a figure as a formatted string."""
  return "-" if value is None else f"{value:,.5g}"
