"""Reward terms: their weights, and what several tasks pay for."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from tasks.names import nearest, settings


def weigh(config: Any, terms: Mapping[str, Tensor]) -> dict[str, float]:
  """Return the weight of each term: the field `reward_<term>`; ValueError where one lacks the other."""
  weights = settings(config, "reward_")
  for name in sorted({*weights} ^ {*terms}):
    lacking = "reward() has no such term" if name in weights else "Config has no such field"
    others = [f"reward_{other}" for other in (terms if name in weights else weights)]
    raise ValueError(f"reward_{name}: {lacking}, {nearest(f'reward_{name}', others)}")
  for name, weight in weights.items():
    if not isinstance(weight, int | float):
      raise ValueError(f"reward_{name}={weight} is not a number: it is the weight of a term")
  return weights


def replace(terms: dict[str, Tensor], where: Tensor, name: str) -> dict[str, Tensor]:
  """Return `terms`, each [num_envs], zero where `where` is true, and a term `name` that is one there."""
  kept = {key: torch.where(where, 0.0, value) for key, value in terms.items()}
  return kept | {name: where.to(torch.float32)}
