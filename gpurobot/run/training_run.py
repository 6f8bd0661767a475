"""A training run: its folder, start, limits, log and checkpoints, around the loop of `train.py`."""

from typing import Self

from gpurobot.config import TrainConfig
from gpurobot.learn.algorithm import Algorithm, warm_up
from gpurobot.run import checkpoint, folder
from gpurobot.run.interrupt import Interrupt
from gpurobot.run.log import Log


class TrainingRun:
  """A run from its first iteration to its last checkpoint; every rank calls the same methods.

  It is a context: its end writes the summary, closes the files and finds the `status`.
  """

  def __init__(self, config: TrainConfig, learner: Algorithm) -> None:
    """Claim the run folder, put the learner where config says that training starts, and warm it up.

    Raises ConfigError where the folder is taken, and CheckpointError where the checkpoint does not fit.
    """
    self._world = learner.world
    self.folder, self._lock = folder.claim(config, self._world)
    seconds = checkpoint.restore(config, learner)
    warm_up(learner)
    self._world.remember(str(self.folder))
    self._interrupt, self._saver = Interrupt(), checkpoint.Saver(config, learner, self.folder)
    self._log = Log(config, learner, self.folder, seconds)
    self.status = 0  # with which the program leaves: 128 + a signal's number, 1 without a last checkpoint

  def should_stop(self) -> bool:
    """Tell whether a limit is reached, or a signal has asked for an end, on any rank.

    Saves a checkpoint before the end and whenever one is due: the ranks agree on both in one collective.
    """
    end = self._log.finished or self._interrupt.requested
    stop, due = self._world.any_rank(end, self._saver.due)
    if stop or due:
      self._log.warn(self._saver.save(self._log.seconds))
    return stop

  def step(self) -> None:
    """Follow an iteration in the log."""
    self._log.step()

  def __enter__(self) -> Self:
    return self

  def __exit__(self, kind: object, *_: object) -> None:
    """Write the summary and find the status, unless an error ended the run; give terminal and folder back."""
    with self._lock, self._log:
      if kind is None:
        self.status = max(self._world.gather(max(self._interrupt.status, int(self._saver.failed))))
        self._log.close()
