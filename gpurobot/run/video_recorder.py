"""Videos of a policy in training, drawn by another process: training neither waits nor fails with it."""

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpurobot.config import TrainConfig, to_dict
from gpurobot.learn.algorithm import Algorithm
from gpurobot.run import checkpoint
from gpurobot.run.tensorboard import TensorBoardLog

FOLDER = "videos"  # of a run
COMMAND = (sys.executable, "-m", "gpurobot.record")
LOOK = ("seconds=6", "fps=15", "width=256", "height=192")
PATIENCE = 60.0  # for the last video when training ends [s]


@dataclass(frozen=True)
class Take:
  """A video that is being drawn."""

  process: subprocess.Popen[bytes]
  path: Path  # of the policy; beside it are the video, .gif, and what the process says, .log
  steps: int  # of training, when the policy was what it shows


class VideoRecorder:
  """Keeps the policy of every `record_every`th iteration in the run folder, and a video of each."""

  def __init__(self, config: TrainConfig, learner: Algorithm, folder: Path, board: TensorBoardLog) -> None:
    self.config, self.learner, self.folder, self.board = config, learner, folder / FOLDER, board
    self._every = config.record_every
    self._take: Take | None = None
    self._slow = False  # it has been said that drawing takes too long

  def step(self) -> list[str]:
    """Follow an iteration; return warnings."""
    if not self._every:
      return []
    warnings = self._finish() if self._take and self._take.process.poll() is not None else []
    return warnings + self._begin() if self.learner.iteration % self._every == 0 else warnings

  def _begin(self) -> list[str]:
    """Let the present policy be drawn, unless the last one still is."""
    if self._take:
      told, self._slow = self._slow, True
      return [] if told else ["a video takes longer than record_every iterations: some are left out"]
    path = self.folder / f"{self.learner.iteration:06d}.pt"
    words = (*COMMAND, *LOOK, f"checkpoint={path}", f"video={path.with_suffix('.gif')}")
    content = {"config": to_dict(self.config), "learner": self.learner.policy_dict()}
    try:
      self.folder.mkdir(exist_ok=True)
      checkpoint.save(path, content)
      with path.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
          words,
          stdin=subprocess.DEVNULL,
          stdout=log,
          stderr=log,
          env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
          process_group=0,  # a Ctrl-C is meant for the training; Linux weighs sessions, not their processes
        )
      _step_back(process.pid)
    except OSError as error:
      return [_failure(path, str(error))]
    self._take = Take(process, path, self.learner.steps)
    return []

  def _finish(self) -> list[str]:
    """Show the video that has been drawn to TensorBoard, or return why there is none."""
    take, self._take = self._take, None
    if take is None:
      return []
    log = take.path.with_suffix(".log")
    try:
      if take.process.returncode:
        return [_failure(take.path, (log.read_text().splitlines() or ["it does not say why"])[-1])]
      self.board.write_video("policy", take.path.with_suffix(".gif").read_bytes(), take.steps)
      log.unlink()
    except OSError as error:  # TensorBoard's writer raises what once befell it, too
      return [_failure(take.path, str(error))]
    return []

  def close(self) -> list[str]:
    """Wait for the last video, but not for long; return warnings."""
    if self._take is None:
      return []
    try:
      self._take.process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
      self._take.process.kill()
      return [_failure(self._take.path, f"it took more than {PATIENCE:g} s after the end of training")]
    return self._finish()


def _step_back(process: int) -> None:
  """Leave a process the time that no other wants; where the system knows no such, little of it."""
  with suppress(OSError):  # it may have ended, or the system may forbid it: a video is drawn all the same
    if hasattr(os, "SCHED_IDLE"):
      os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))
    else:
      os.setpriority(os.PRIO_PROCESS, process, 19)


def _failure(path: Path, reason: str) -> str:
  return f"no video of '{path}': {reason.removeprefix('error: ')}"
