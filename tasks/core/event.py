"""Events that happen to each environment of a task when its own timer runs out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.core.observation import Uniform
from tasks.core.validation import by_name


@dataclass(frozen=True)
class Event:
  """An event that repeats at random intervals; a new interval starts with each episode."""

  act: Callable[[], dict[str, Tensor]]  # returns candidates [num_envs, ...] by name
  interval: tuple[float, float]  # low, high [s]
  uniform: Uniform
  left: Tensor  # time until the next event [num_envs] [s]

  def candidates(self) -> Mapping[str, Tensor]:
    """Return the new values [num_envs, ...] by name; raise TaskError if they are no mapping."""
    return by_name(f"{self.act.__name__}()", self.act())

  def due(self, dt: float) -> Tensor:
    """Advance the timers by `dt` [s]; return where the event happens now [num_envs] bool."""
    self.left.sub_(dt)
    due = self.left < dt / 2  # the nearest step: sums of dt round
    self.restart(due)
    return due

  def restart(self, where: Tensor) -> None:
    """Draw a new interval where `where` [num_envs] bool is true."""
    drawn = self.uniform(f"interval of {self.act.__name__}", (), *self.interval)
    self.left.copy_(torch.where(where, drawn, self.left))
