"""Critic heads: a scalar value in normalised units, or a distribution over bins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpurobot.algorithm_config import Critic, PPOConfig
from gpurobot.learn.layers import linear
from gpurobot.learn.normalize import symlog

BINS = 127  # odd, so that one bin is 0
REACH = 10.0  # symlog of the outermost bins
LARGEST = math.expm1(REACH)  # 22,025, the largest value; transformed rewards usually sum to less


class ValuePrediction(Protocol):
  """Prediction of the return for a batch [...] of observations."""

  @property
  def value(self) -> Tensor:
    """The expected return [...]."""

  def loss(self, return_: Tensor, old_value: Tensor, clip: float) -> Tensor:
    """Return the value loss [...], given the returns [...] and the rollout's values [...]."""


@dataclass(frozen=True)
class ScalarValue:
  """Scalar value [...]."""

  value: Tensor

  def loss(self, return_: Tensor, old_value: Tensor, clip: float) -> Tensor:
    """Return half the squared error [...]; moves beyond `clip` from the old value do not reduce it."""
    near = old_value + (self.value - old_value).clamp(-clip, clip)
    return 0.5 * torch.maximum((self.value - return_).square(), (near - return_).square())


@dataclass(frozen=True)
class TwohotValue:
  """Distribution over bins [BINS]: logits [..., BINS] (Bellemare et al. 2017, arXiv 1707.06887).

  Logits beyond those of the bins are -inf.
  """

  logits: Tensor
  bins: Tensor

  @property
  def value(self) -> Tensor:
    """The expectation [...]; each bin is summed with its opposite, so that large ones cancel exactly."""
    p, middle = self.logits.softmax(-1), BINS // 2
    return (p[..., middle + 1 : BINS] - p[..., :middle].flip(-1)) @ self.bins[middle + 1 :]

  def loss(self, return_: Tensor, old_value: Tensor, clip: float) -> Tensor:  # noqa: ARG002 (nothing to clip)
    """Return the cross entropy [...] [nat] to the two-hot encoding of the returns [...].

    It weights the two bins next to the return so that the return is their mean (Hafner et al. 2023, arXiv
    2301.04104).
    """
    position = (symlog(return_) + REACH) * ((BINS - 1) / (2 * REACH))
    lower = position.floor().clamp(0, BINS - 2).nan_to_num(0.0).long()  # nan stays in the loss, no index
    low, high = self.bins[lower], self.bins[lower + 1]
    share = ((return_ - low) / (high - low)).clamp(0, 1)
    log_p = self.logits.log_softmax(-1).gather(-1, torch.stack([lower, lower + 1], -1))
    return -torch.lerp(log_p[..., 0], log_p[..., 1], share)


class ScalarHead(nn.Module):
  """Output layer of a scalar critic: features [..., width] to a ScalarValue [...]."""

  def __init__(self, width: int) -> None:
    super().__init__()
    self.output = linear(width, 1, gain=1.0)

  @torch.no_grad()
  def preserve(self, old: Sequence[Tensor], new: Sequence[Tensor]) -> None:
    """Rescale the layer so that the denormalised values stay the same under new moments of the returns.

    `old` and `new` are (shift, scale), [1] each, of the normalised values. Otherwise an update of the moments
    would shift every value, then the returns, which bootstrap from the values, and then the moments again
    (PopArt: van Hasselt et al. 2016, arXiv 1602.07714).
    """
    self.output.bias.mul_(old[1]).add_(old[0]).sub_(new[0]).div_(new[1])
    self.output.weight.mul_(old[1]).div_(new[1])

  def forward(self, features: Tensor) -> ScalarValue:
    """Return the value [...] for features [..., width]."""
    return ScalarValue(self.output(features).squeeze(-1))


class TwohotHead(nn.Module):
  """Output layer of a two-hot critic: features [..., width] to a TwohotValue [...], 0 at initialisation.

  The bins are evenly spaced in symlog, narrow near 0 and wide far from it, so returns need no normalisation.
  """

  bins: Tensor

  def __init__(self, width: int) -> None:
    super().__init__()
    self.output = linear(width, BINS, gain=0.0)
    half = torch.linspace(0, REACH, BINS // 2 + 1).expm1()
    self.register_buffer("bins", torch.cat([-half[1:].flip(0), half]), persistent=False)

  def forward(self, features: Tensor) -> TwohotValue:
    """Return the distribution of the return [...] for features [..., width]."""
    return TwohotValue(self.output(features), self.bins)


class PaddedTwohotHead(TwohotHead):
  """Head whose logits [..., BINS + 1] have one more, of -inf: no distribution, value or gradient changes.

  With 128 columns the product of 256 rows takes a core 170 us, with 127 it takes 240 us: no row is aligned.
  """

  def forward(self, features: Tensor) -> TwohotValue:
    """Return the distribution of the return [...] for features [..., width]."""
    weight = functional.pad(self.output.weight, (0, 0, 0, 1))
    bias = functional.pad(self.output.bias, (0, 1), value=-math.inf)
    return TwohotValue(functional.linear(features, weight, bias), self.bins)


def value_head(width: int, ppo: PPOConfig) -> ScalarHead | TwohotHead:
  """Return the head for features [..., width] that ppo.critic selects."""
  return TwohotHead(width) if ppo.critic is Critic.twohot else ScalarHead(width)
