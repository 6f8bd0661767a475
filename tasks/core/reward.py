"""Weights of reward terms, by the fields of a task's settings."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from tasks.core.names import hint, settings


def weigh(config: Any, terms: Mapping[str, Tensor]) -> dict[str, float]:
  """Return the weight of each term [num_envs], `reward_<term>`; ValueError where one lacks the other."""
  weights = settings(config, "reward_")
  for name in sorted({*weights} ^ {*terms}):
    lacking = "reward() has no such term" if name in weights else "Config has no such field"
    others = [f"reward_{other}" for other in (terms if name in weights else weights)]
    raise ValueError(f"reward_{name}: {lacking}, {hint(f'reward_{name}', others)}")
  for name, weight in weights.items():
    if not isinstance(weight, int | float):
      raise ValueError(f"reward_{name}={weight} is not a number: it is the weight of a term")
  return weights
