"""Estimator of what the policy does not observe, as the velocity of a robot with legs, from what it does."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from gpurobot.learn.encoder import GroupInput
from gpurobot.learn.env import Image
from gpurobot.learn.identity import CRITIC, POLICY
from gpurobot.learn.layers import hidden, linear
from gpurobot.settings.algorithms import PPOConfig
from gpurobot.settings.config import ConfigError

UNITS = (128, 64)  # of the hidden layers


def estimated_columns(names: Mapping[str, Sequence[str]], ppo: PPOConfig) -> dict[str, list[int]]:
  """Return the critic's columns of each block to estimate, by the names of `identity.names_of`.

  Raises ConfigError if the critic does not observe a block, or if the policy does.
  """
  critic, policy = names.get(CRITIC, []), names.get(POLICY, [])
  known = [name for name in dict.fromkeys(critic) if name not in policy]
  for name in ppo.estimate:
    if name not in known:
      others = f"write one of {', '.join(known)}" if known else "leave it out"
      raise ConfigError(f"ppo.estimate: '{name}' is no block that the critic alone observes; {others}")
  return {name: [i for i, own in enumerate(critic) if own == name] for name in ppo.estimate}


class EstimatingInput(GroupInput):
  """Input of the actor: its observations, and estimates of the critic's columns beside them.

  The estimator learns by its squared error alone, together with the policy (Ji et al. 2022, arXiv
  2202.05481): no gradient of the policy's loss reaches it.
  """

  def __init__(
    self, width: int, images: Mapping[str, Image], ppo: PPOConfig, blocks: Mapping[str, Sequence[int]]
  ) -> None:
    """Take the width of the policy's group, and the columns of the group "critic" to estimate, by block."""
    super().__init__("policy", width, images, ppo)
    self.names = [name for name, columns in blocks.items() for _ in columns]
    self.columns = [index for columns in blocks.values() for index in columns]
    layers: list[nn.Module] = []
    before = self.width
    for units in UNITS:
      layers += [linear(before, units, gain=math.sqrt(2)), nn.ELU()]
      before = units
    self.estimator = nn.Sequential(*layers, linear(before, len(self.columns), gain=1.0))
    self.width += len(self.columns)

  def estimate(self, x: Tensor) -> Tensor:
    """Return the normalised columns [..., n] as estimated from the other inputs x [..., width - n]."""
    rounded = x.dtype is torch.bfloat16
    return hidden(self.estimator, x, rounded, torch.float32 if rounded else x.dtype)

  def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
    """Return [..., width] of normalised groups and stored images, in the type of the group."""
    x = super().forward(obs)
    return torch.cat([x, self.estimate(x).detach().to(x.dtype)], dim=-1)

  def errors(self, obs: Mapping[str, Tensor]) -> Tensor:
    """Return the errors [..., n] of the estimates, in the unit of the normalised columns."""
    wanted = obs["critic"][..., self.columns]
    found = self.estimate(super().forward(obs))
    return found - wanted.to(found.dtype)

  def measure(self, obs: Mapping[str, Tensor], unit: Tensor) -> dict[str, Tensor]:
    """Return the root mean square error of each block, `estimate/<block>`, a scalar.

    obs [..., n, width]: normalised. unit [critic's width]: scale of the normalisation.
    """
    squares = (self.errors(obs) * unit[self.columns]).square().flatten(0, -2).mean(0)
    owners = zip(self.names, squares, strict=True)
    sums: dict[str, list[Tensor]] = {}
    for name, square in owners:
      sums.setdefault(f"estimate/{name}", []).append(square)
    return {name: torch.stack(own).mean().sqrt() for name, own in sums.items()}
