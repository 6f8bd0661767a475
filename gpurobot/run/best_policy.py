"""Best policy of a run: a copy of the one with the highest mean return, written with the checkpoints."""

from pathlib import Path
from typing import Any

from gpurobot.device.transfer import cloned
from gpurobot.learn.algorithm import Algorithm
from gpurobot.run import checkpoint
from gpurobot.run.logger import Guard
from gpurobot.run.returns import Returns
from gpurobot.settings.config import TrainConfig, to_dict


class BestPolicy:
  """Keeper of the policy with the best mean return, on the main rank.

  The copy stays on the device until a checkpoint is due. So an iteration reads nothing from the device for
  it, and after a crash the resumed run finds the same best policy again.
  """

  def __init__(self, config: TrainConfig, learner: Algorithm, folder: Path) -> None:
    """Take up the best policy of the run if it is resumed in its folder."""
    self._config, self._learner = config, learner
    self._path = folder / checkpoint.BEST
    self._guard = Guard(str(self._path))
    self._held: dict[str, Any] = {}  # the best policy until it is written
    self._return = return_of(self._path) if config.resume else None

  def offer(self, returns: Returns) -> None:
    """Hold the present policy if the mean return is the best so far; ties keep the first."""
    if returns.best is None or returns.best_steps != self._learner.steps:
      return
    if self._return is None or returns.best > self._return:
      self._return = returns.best
      self._held = {
        "config": to_dict(self._config),
        "learner": cloned(self._learner.policy_dict()),
        "return": returns.best,
        "steps": returns.best_steps,
      }

  def write(self) -> list[str]:
    """Write the held policy, if there is one; return warnings. If the disk is full, it stays held."""
    return self._guard.call(self._save) if self._held else []

  def _save(self) -> None:
    checkpoint.save(self._path, self._held)
    self._held = {}


def return_of(path: Path) -> float | None:
  """Return the mean return of the best policy of a run, in its file; None without a readable one."""
  try:
    found = checkpoint.load(path)["return"] if path.is_file() else None
  except (OSError, KeyError, checkpoint.CheckpointError):
    return None
  return found if isinstance(found, float) else None
