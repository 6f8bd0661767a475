"""Watch over one training: its clock, its episodes, and the step and time at which it reaches a level.

The clock counts wall-clock and processor seconds, and stands still in evaluations.
"""

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.report import line
from gpurobot.adapters.gym import TaskVectorEnv

CPU = torch.device("cpu")
EPISODES = 128  # of an evaluation, one per environment
WINDOW = 5120  # environment steps of a row of the log, as in `train.py` with 128 environments
MEASURES = ("log", "evaluated")  # of training episodes, with noise; of a policy without noise


class Over(Exception):
  """The end of a training."""


class Watch:
  """Clock of a training, and what it has reached so far."""

  def __init__(self, level: float, limit: float) -> None:
    """Take the level of the return to reach, and a limit of processor seconds."""
    self.level, self.limit = level, limit
    self.steps = 0  # environment steps so far
    self.spent = (0.0, 0.0)  # wall-clock and processor seconds up to the last stop
    self._began: tuple[float, float] | None = None
    self.reached: dict[str, tuple[int, float, float]] = {}  # steps, seconds and processor seconds by measure
    self.returns: dict[str, list[float]] = {measure: [] for measure in MEASURES}

  def start(self) -> None:
    """Let the clock run."""
    self._began = _now()

  def stop(self) -> None:
    """Stop the clock."""
    self.spent, self._began = self.seconds, None

  @property
  def seconds(self) -> tuple[float, float]:
    """Wall-clock and processor seconds so far."""
    if self._began is None:
      return self.spent
    wall, cpu = (now - began for now, began in zip(_now(), self._began, strict=True))
    return self.spent[0] + wall, self.spent[1] + cpu

  def saw(self, measure: str, mean: float) -> None:
    """Note a mean return by one of MEASURES; nan if no episode ended."""
    if math.isnan(mean):
      return
    self.returns[measure].append(mean)
    if mean >= self.level:
      self.reached.setdefault(measure, (self.steps, *self.seconds))

  def due(self, every: int, stride: int) -> bool:
    """Return whether the last `stride` environment steps passed a multiple of `every`."""
    return self.steps > 0 and self.steps // every > (self.steps - stride) // every

  def check(self) -> None:
    """Raise Over if the time is up or both measures have reached the level."""
    if self.seconds[1] >= self.limit or len(self.reached) == len(MEASURES):
      raise Over

  def show(self, name: str, updates: float) -> None:
    """Print the figures of a training with so many gradient steps per environment step."""
    wall, cpu = self.seconds
    for measure, returns in self.returns.items():
      steps, seconds, cpu_seconds = self.reached.get(measure, (math.nan,) * 3)
      line(f"{name}.{measure}.steps", steps)
      line(f"{name}.{measure}.seconds", seconds)
      line(f"{name}.{measure}.cpu_seconds", cpu_seconds)
      line(f"{name}.{measure}.best", max(returns, default=math.nan))
      line(f"{name}.{measure}.last", returns[-1] if returns else math.nan)
    line(f"{name}.steps", self.steps)
    line(f"{name}.seconds", wall)
    line(f"{name}.cpu_seconds", cpu)
    line(f"{name}.gradient_steps_per_cpu_second", self.steps * updates / cpu)


class Exam:
  """Evaluations of a policy without noise, in environments of their own; the clock stands still meanwhile."""

  def __init__(self, task: str, watch: Watch) -> None:
    self.envs, self.watch = TaskVectorEnv(EPISODES, task=task, output="torch"), watch

  @torch.no_grad()
  def take(self, act: Callable[[Tensor], Tensor]) -> None:
    """Note the mean return of the first episode of each environment, which always start alike.

    act: returns actions [EPISODES, num_actions] for raw observations [EPISODES, width].
    """
    self.watch.stop()
    obs = self.envs.reset(seed=0)[0]
    sums, running = torch.zeros(EPISODES), torch.ones(EPISODES, dtype=torch.bool)
    while running.any():
      obs, reward, terminated, truncated, _ = self.envs.step(act(obs))
      sums += reward * running
      running &= ~(terminated | truncated)
    self.watch.saw("evaluated", float(sums.mean()))
    self.watch.start()


def _now() -> tuple[float, float]:
  return time.perf_counter(), time.process_time()
