"""The random numbers that tasks ask for: the trainer's `Random` gives them."""

from typing import Any, Protocol

from torch import Tensor


class Random(Protocol):
  """Random numbers per environment, keyed by purpose and by a step counter that lives on the device."""

  def uniform(self, purpose: str, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0) -> Tensor:
    """Return numbers [num_envs, *shape] in [low, high)."""

  def normal(self, purpose: str, shape: tuple[int, ...]) -> Tensor:
    """Return standard normal numbers [num_envs, *shape]."""

  def advance(self) -> None:
    """Move the step counter by one."""

  def state_dict(self) -> dict[str, Any]:
    """Return what the future numbers depend on."""

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Continue from `state`."""
