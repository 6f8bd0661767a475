"""Events: what happens to each environment of a task whenever its own timer runs out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.core.observation import Uniform
from tasks.core.validation import by_name


@dataclass(frozen=True)
class Event:
  """Something that happens to each environment at intervals, each drawn anew; an episode starts with one."""

  act: Callable[[], dict[str, Tensor]]  # returns candidates [num_envs, ...] by name
  interval: tuple[float, float]  # low, high [s]
  uniform: Uniform
  left: Tensor  # time until it happens next [num_envs] [s]

  def candidates(self) -> Mapping[str, Tensor]:
    """Return what it would change [num_envs, ...], by name; raise TaskError where that is something else."""
    return by_name(f"{self.act.__name__}()", self.act())

  def due(self, dt: float) -> Tensor:
    """Let `dt` seconds pass; return where it happens now [num_envs] bool."""
    self.left.sub_(dt)
    due = self.left < dt / 2  # the nearest step: sums of dt round
    self.restart(due)
    return due

  def restart(self, where: Tensor) -> None:
    """Draw the time left where `where` [num_envs] is true."""
    drawn = self.uniform(f"interval of {self.act.__name__}", (), *self.interval)
    self.left.copy_(torch.where(where, drawn, self.left))
