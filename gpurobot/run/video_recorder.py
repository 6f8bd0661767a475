"""Videos of the policy during training, rendered by another process, so that training does not wait."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpurobot.device.process import python
from gpurobot.learn.algorithm import Algorithm
from gpurobot.run import checkpoint
from gpurobot.run.logger import Loggers
from gpurobot.settings.config import TrainConfig, code_keys, to_dict

FOLDER = "videos"  # name of the folder in a run folder
PROGRAM = ("-m", "gpurobot.record")
LOOK = ("seconds=6", "fps=15", "width=256", "height=192")
PATIENCE = 60.0  # longest wait for the last video at the end of training [s]


@dataclass(frozen=True)
class Take:
  """Video in progress."""

  process: subprocess.Popen[bytes]
  path: Path  # checkpoint of the policy; beside it are the video (.gif) and the process's output (.log)
  steps: int  # environment steps of training at that checkpoint


class VideoRecorder:
  """Recorder of the policy at every `record_every`th iteration: a checkpoint and a video of each."""

  def __init__(self, config: TrainConfig, learner: Algorithm, folder: Path, loggers: Loggers) -> None:
    self.config, self.learner, self.folder = config, learner, folder / FOLDER
    self._loggers = loggers
    self._every = config.record_every
    self._take: Take | None = None
    self._slow = False  # whether the warning about slow rendering has been given

  def step(self) -> list[str]:
    """Start and finish videos after an iteration; return warnings."""
    if not self._every:
      return []
    warnings = self._finish() if self._take and self._take.process.poll() is not None else []
    return warnings + self._begin() if self.learner.iteration % self._every == 0 else warnings

  def _begin(self) -> list[str]:
    """Start a video of the current policy, unless the last one is still in progress."""
    if self._take:
      warned, self._slow = self._slow, True
      return [] if warned else ["a video takes longer than record_every iterations; some are left out"]
    path = self.folder / f"{self.learner.iteration:06d}.pt"
    policy = f"checkpoint={path}", *checkpoint.code_arguments(self.config)
    words = (*PROGRAM, *LOOK, *policy, f"video={path.with_suffix('.gif')}")
    command, environment = python(*words, places=_places(self.config), OMP_NUM_THREADS="1")
    content = {"config": to_dict(self.config), "learner": self.learner.policy_dict()}
    try:
      self.folder.mkdir(exist_ok=True)
      checkpoint.save(path, content)
      with path.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
          command,
          stdin=subprocess.DEVNULL,
          stdout=log,
          stderr=log,
          env=environment,
          # Ctrl-C goes only to the training. A new session would get its own share of the CPU on Linux.
          process_group=0,
        )
      _lower_priority(process.pid)
    except OSError as error:
      return [_failure(path, str(error))]
    self._take = Take(process, path, self.learner.steps)
    return []

  def _finish(self) -> list[str]:
    """Send the finished video to the loggers; return warnings."""
    take, self._take = self._take, None
    if take is None:
      return []
    log = take.path.with_suffix(".log")
    try:
      if take.process.returncode:
        return [_failure(take.path, (log.read_text().splitlines() or ["no output"])[-1])]
      log.unlink()
    except OSError as error:
      return [_failure(take.path, str(error))]
    return self._loggers.write_video(take.path.with_suffix(".gif"), take.steps)

  def close(self) -> list[str]:
    """Wait for the last video, at most PATIENCE; return warnings."""
    if self._take is None:
      return []
    try:
      self._take.process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
      self._take.process.kill()
      return [_failure(self._take.path, f"it took more than {PATIENCE:g} s after the end of training")]
    return self._finish()


def _places(config: TrainConfig) -> Iterator[str]:
  """Yield where this process found the user's modules that settings name, such as task=my_package.task."""
  values = to_dict(config)
  for key in ("task", *code_keys(config)):
    top = sys.modules.get(str(values[key]).partition(":")[0].partition(".")[0])
    if path := next(iter(getattr(top, "__path__", [])), getattr(top, "__file__", None)):
      yield str(Path(path).parent)


def _lower_priority(process: int) -> None:
  """Schedule a process on idle time only, or at the lowest priority where the system lacks that."""
  with suppress(OSError):  # the process may have ended, or the system may forbid it: neither matters
    if hasattr(os, "SCHED_IDLE"):
      os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))
    elif hasattr(os, "setpriority"):
      os.setpriority(os.PRIO_PROCESS, process, 19)


def _failure(path: Path, reason: str) -> str:
  return f"no video of '{path}': {reason.removeprefix('error: ')}"
