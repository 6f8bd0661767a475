"""Interface of the random numbers that tasks use; the trainer's `Random` implements it."""

from typing import Any, Protocol

from torch import Tensor


class RandomSource(Protocol):
  """Source of random numbers per environment, keyed by a purpose and by a step counter on the device."""

  def uniform(self, purpose: str, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> Tensor:
    """Return uniform numbers [num_envs, *shape] in [low, high)."""

  def normal(self, purpose: str, shape: tuple[int, ...]) -> Tensor:
    """Return standard normal numbers [num_envs, *shape]."""

  def advance(self) -> None:
    """Increase the step counter by one."""

  def state_dict(self) -> dict[str, Any]:
    """Return the state that determines all later numbers."""

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Restore a state that `state_dict` returned."""
