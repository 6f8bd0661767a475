"""Training run: folder, restore, limits, log and checkpoints around the loop of a training."""

from collections.abc import Mapping
from typing import Self

from gpurobot.learn.algorithm import Algorithm, warm_up
from gpurobot.run import checkpoint, folder
from gpurobot.run.interrupt import UNREAD, Interrupt
from gpurobot.run.log import Log
from gpurobot.settings.config import TrainConfig


class TrainingRun:
  """Training run from the first iteration to the last checkpoint; every rank calls the same methods.

  It is a context manager: its exit writes the summary, closes the files and sets `status`.
  """

  def __init__(self, config: TrainConfig, learner: Algorithm) -> None:
    """Claim the run folder, restore the learner from a checkpoint if config names one, and warm it up.

    Raises ConfigError if the folder is taken, and CheckpointError if the checkpoint does not fit.
    """
    self._world = learner.world
    self.folder, lock = folder.claim(config, self._world)
    with lock:  # released if what follows fails: in a notebook the process goes on
      before = checkpoint.restore(config, learner)
      warm_up(learner)
      self._world.remember(str(self.folder))
      self._interrupt, self._saver = Interrupt(), checkpoint.Saver(config, learner, self.folder)
      self._log = Log(config, learner, self.folder, **before)
      self._lock = lock.pop_all()
    self.status = 0  # exit status: 128 + a signal's number, or 1 if the last checkpoint could not be saved

  def should_stop(self) -> bool:
    """Return whether a limit is reached, a signal requests a stop or nobody reads the output, on any rank.

    Saves a checkpoint before the end and whenever one is due; the ranks agree on both in one collective.
    """
    if self._log.unread:
      self._interrupt.request(UNREAD)
    end = self._log.finished or self._interrupt.requested
    stop, due = self._world.any_rank(end, self._saver.due)
    if stop or due:
      self._log.warn(self._log.best.write())
      self._log.warn(self._saver.save(self._log.state))
    return stop

  def step(self) -> None:
    """Log a finished iteration."""
    self._log.step()

  @property
  def row(self) -> Mapping[str, float]:
    """The last row of the log, by column; empty before the first, and on all ranks but the main one."""
    return self._log.last_row

  def stop(self) -> None:
    """Ask for the end of training, as a signal does; the exit status stays 0."""
    self._interrupt.requested = True

  def __enter__(self) -> Self:
    return self

  def __exit__(self, kind: object, *_: object) -> None:
    """Write the summary and set `status`, unless an error ended the run; release terminal and folder."""
    with self._lock, self._log:
      if kind is None:
        self.status = max(self._world.gather(max(self._interrupt.status, int(self._saver.failed))))
        self._log.close()
