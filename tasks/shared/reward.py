"""Reward terms that several tasks share."""

import math
from typing import Literal

import torch
from torch import Tensor

Shape = Literal["gaussian", "linear", "quadratic", "long_tail", "reciprocal"]


def replace(
  terms: dict[str, Tensor], where: Tensor, name: str, value: Tensor | float = 1.0
) -> dict[str, Tensor]:
  """Return `terms` [num_envs], zero where `where` [num_envs] is true, and a term `name`: `value` there."""
  kept = {key: torch.where(where, 0.0, term) for key, term in terms.items()}
  return kept | {name: torch.where(where, value, 0.0)}


def tolerance(
  x: Tensor,
  low: float = 0.0,
  high: float = 0.0,
  margin: float = 0.0,
  shape: Shape = "gaussian",
  at_margin: float = 0.1,
) -> Tensor:
  """Return 1 where `x` [...] is in [low, high], and less outside: `at_margin` at a distance of `margin`.

  With a margin of 0 it is 0 outside. The shapes follow the DeepMind Control Suite (Tassa et al. 2018, https://arxiv.org/abs/1801.00690).
  """
  if margin == 0.0:
    return ((x >= low) & (x <= high)).to(x.dtype)
  distance = torch.maximum(low - x, x - high).clamp(min=0.0) / margin
  if shape == "gaussian":
    return torch.exp(math.log(at_margin) * distance.square())
  if shape == "linear":
    return (1.0 - (1.0 - at_margin) * distance).clamp(min=0.0)
  if shape == "quadratic":
    return (1.0 - (1.0 - at_margin) * distance.square()).clamp(min=0.0)
  if shape == "long_tail":
    return 1.0 / (1.0 + (1.0 / at_margin - 1.0) * distance.square())
  return 1.0 / (1.0 + (1.0 / at_margin - 1.0) * distance)
