"""Weights of reward terms, from the fields `reward_<term>` of the settings of a task."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from tasks.core.names import hint, settings


def weigh(config: Any, terms: Mapping[str, Tensor]) -> dict[str, float]:
  """Return the weight `reward_<term>` of each term [num_envs]; raise ValueError if their names differ."""
  weights = settings(config, "reward_")
  for name in sorted({*weights} ^ {*terms}):
    lacking = "reward() has no such term" if name in weights else "Config has no such field"
    others = [f"reward_{other}" for other in (terms if name in weights else weights)]
    raise ValueError(f"reward_{name}: {lacking}, {hint(f'reward_{name}', others)}")
  for name, weight in weights.items():
    if not isinstance(weight, int | float):
      raise ValueError(f"reward_{name}={weight} is not a number: it is the weight of a term")
  return weights
