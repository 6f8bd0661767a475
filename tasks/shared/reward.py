"""Reward terms that several tasks share."""

import torch
from torch import Tensor


def replace(terms: dict[str, Tensor], where: Tensor, name: str) -> dict[str, Tensor]:
  """Return `terms` [num_envs], zero where `where` [num_envs] is true, and a term `name` that is one there."""
  kept = {key: torch.where(where, 0.0, value) for key, value in terms.items()}
  return kept | {name: where.to(torch.float32)}
