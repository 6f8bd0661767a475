"""Transform of the rewards that a policy learns from, with a given or an automatic scale."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gpurobot.learn.normalize import Moments, symlog
from gpurobot.settings.algorithms import AlgorithmConfig, RewardTransform

SIZE = 0.1  # root mean square of the scaled rewards: symlog compresses 0.1 by 5 %, and 1 by 31 %


def transform(reward: Tensor, kind: RewardTransform, scale: Tensor | float) -> Tensor:
  """Return the rewards [...] that a policy learns from, given raw rewards [...]."""
  if kind is RewardTransform.none:
    return reward
  scaled = reward * scale
  return symlog(scaled) if kind is RewardTransform.symlog else scaled


class RewardScaler:
  """Transform of raw rewards: symlog(scale r), scale r, or r.

  An automatic scale makes the root mean square of all rewards so far SIZE. It changes only in `merge`: all
  ranks first sum the `moments.pending` of the raw rewards.
  """

  def __init__(self, settings: AlgorithmConfig, device: torch.device, dtype: torch.dtype) -> None:
    self.kind = settings.reward_transform
    self.automatic = settings.reward_scale is None and self.kind is not RewardTransform.none
    self.moments = Moments(1, device)
    first = 1.0 if settings.reward_scale is None else settings.reward_scale
    self.scale = torch.full((1,), first, dtype=dtype, device=device)

  def __call__(self, reward: Tensor) -> Tensor:
    """Return the transformed rewards [...] of raw rewards [...]."""
    return transform(reward, self.kind, self.scale)

  def accumulate(self, reward: Tensor, valid: Tensor) -> None:
    """Add raw rewards [horizon, local_envs] to the pending sums, where `valid` [horizon, local_envs]."""
    self.moments.accumulate(reward.reshape(-1, 1), valid.flatten())

  def merge(self) -> Tensor:
    """Take the pending sums into the scale; return the factor [1] that values follow: 1 for the first."""
    old, first = self.scale.clone(), self.moments.count == 0
    self.moments.merge()
    size = (self.moments.variance + self.moments.mean.square()).sqrt()
    known = (self.moments.count > 0) & (size > 0)
    self.scale.copy_(torch.where(known, SIZE / size, old))
    return torch.where(first, 1, self.scale / old)

  def state_dict(self) -> dict[str, Any]:
    """Return the scale and the moments of the raw rewards."""
    return {"scale": self.scale, "moments": self.moments.state_dict()}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from a saved state; a given scale stays as it is."""
    if self.automatic:
      self.scale.copy_(state["scale"])
      self.moments.load_state_dict(state["moments"])
