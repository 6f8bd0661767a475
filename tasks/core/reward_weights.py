"""Weights of reward terms, from the fields `reward_<term>` of the settings of a task."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tasks.core.names import hint, settings
from tasks.core.validation import check_terms


def weigh(config: Any, terms: Any, like: Tensor) -> dict[str, float]:
  """Return the weight `reward_<term>` of each term [num_envs] on the device of `like` [num_envs].

  Raises ValueError if their names differ, or if the terms are something else.
  """
  check_terms("reward()", terms, like)
  weights = settings(config, "reward_")
  for name in sorted({*weights} ^ {*terms}):
    lacking = "reward() has no such term" if name in weights else "Config has no such field"
    others = [f"reward_{other}" for other in (terms if name in weights else weights)]
    raise ValueError(f"reward_{name}: {lacking}, {hint(f'reward_{name}', others)}")
  for name, weight in weights.items():
    if not isinstance(weight, int | float) or not math.isfinite(weight):
      raise ValueError(f"reward_{name}={weight} is not a number: it is the weight of a term")
  return weights


def weighted(weights: Mapping[str, float], terms: Any, like: Tensor) -> tuple[list[str], Tensor]:
  """Return the names of a step's terms, and the terms times their weights [terms, num_envs].

  They are on the device of `like` [num_envs]. Raises ValueError if they are not those that `weigh` was given.
  """
  check_terms("reward()", terms, like)
  if len(terms) != len(weights) or not all(name in weights for name in terms):
    raise ValueError(
      f"reward() returned {[*weights]} at first, and now {[*terms]}: return the same in every step"
    )
  return list(terms), torch.stack([weights[name] * term.float() for name, term in terms.items()])
