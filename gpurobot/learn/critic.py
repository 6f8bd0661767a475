"""Critic heads: a scalar value in normalised units, or a distribution over bins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from gpurobot.learn.layers import linear
from gpurobot.settings.algorithms import Critic

BINS = 127  # odd, so that one bin is 0
HALF = BINS // 2 + 1  # logits of the bins from 0 up, before the logits of their opposites
MASKED_LOGIT = -1e9  # logit of the masked bin
REACH = 10.0  # symlog of the outermost bins
LARGEST = math.expm1(REACH)  # 22,025, the largest value; transformed rewards usually sum to less


class ValuePrediction(Protocol):
  """Prediction of the return for a batch [...] of observations."""

  @property
  def value(self) -> Tensor:
    """The expected return [...]."""

  def loss(self, return_: Tensor, old_value: Tensor | None = None, clip: float = 0.0) -> Tensor:
    """Return the value loss [...], given the returns, which broadcast to [...].

    old_value [...]: the rollout's values, if moves beyond `clip` from them shall not reduce the loss.
    """


@dataclass(frozen=True)
class ScalarValue:
  """Scalar value [...]."""

  value: Tensor

  def loss(self, return_: Tensor, old_value: Tensor | None = None, clip: float = 0.0) -> Tensor:
    """Return half the squared error [...]; moves beyond `clip` from an old value do not reduce it."""
    if old_value is None:
      return 0.5 * (self.value - return_).square()
    near = old_value + (self.value - old_value).clamp(-clip, clip)
    return 0.5 * torch.maximum((self.value - return_).square(), (near - return_).square())


class Bins(nn.Module):
  """Returns of the bins, evenly spaced in symlog, and which logits are theirs.

  Of 2 HALF logits the first are those of the bins 0, b1, b2 ..., the others those of none, -b1, -b2 ... With
  128 columns the product of 256 rows takes a core 170 us, with 127 it takes 240 us: no row is aligned.
  """

  returns: Tensor  # [BINS], ascending
  nearest: Tensor  # [BINS - 1, 2] int64: logits of each bin and of the next

  def __init__(self) -> None:
    super().__init__()
    half = torch.linspace(0, REACH, HALF).expm1()
    column = torch.cat([torch.arange(2 * HALF - 1, HALF, -1), torch.arange(HALF)])  # of each bin
    self.register_buffer("returns", torch.cat([-half[1:].flip(0), half]))
    self.register_buffer("nearest", torch.stack([column[:-1], column[1:]], -1), persistent=False)

  def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *args: Any) -> None:
    """Load returns; older checkpoints have none, as these were the same in all."""
    super()._load_from_state_dict({prefix + "returns": self.returns, **state}, prefix, *args)


@dataclass(frozen=True)
class TwohotValue:
  """Distribution over bins (Bellemare et al. 2017, arXiv 1707.06887): logits [..., 2 HALF], see `Bins`."""

  logits: Tensor
  bins: Bins

  @property
  def value(self) -> Tensor:
    """The expectation [...]; each bin is summed with its opposite, so that large ones cancel exactly."""
    positive, negative = self.logits.softmax(-1).split(HALF, -1)
    return (positive - negative) @ self.bins.returns[HALF - 1 :]

  def loss(
    self,
    return_: Tensor,
    old_value: Tensor | None = None,  # noqa: ARG002 (nothing to clip)
    clip: float = 0.0,  # noqa: ARG002
  ) -> Tensor:
    """Return the cross entropy [...] [nat] to the two-hot encoding of the returns.

    It weights the two bins next to the return so that the return is their mean (Hafner et al. 2023, arXiv
    2301.04104).
    """
    returns = self.bins.returns
    lower = torch.bucketize(return_, returns[1:-1], right=True)  # nan stays in the loss
    low, high = returns[lower], returns[lower + 1]
    share = ((return_ - low) / (high - low)).clamp(0, 1)
    nearest = self.bins.nearest[lower].expand(*self.logits.shape[:-1], 2)
    log_low, log_high = self.logits.log_softmax(-1).gather(-1, nearest).unbind(-1)
    return -torch.lerp(log_low, log_high, share)


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

  The bins are narrow near 0 and wide far from it, so returns need no normalisation.
  """

  def __init__(self, width: int) -> None:
    super().__init__()
    self.output, self.bins = linear(width, 2 * HALF, gain=0.0), Bins()
    with torch.no_grad():
      self.output.bias[HALF] = MASKED_LOGIT  # has no probability, so its gradient is 0 and it stays

  def forward(self, features: Tensor) -> TwohotValue:
    """Return the distribution of the return [...] for features [..., width]."""
    return TwohotValue(self.output(features), self.bins)


@torch.no_grad()
def rescale(factor: Tensor, *heads: nn.Module) -> None:
  """Multiply the values of heads by a factor [1]: the returns of their bins, or else their output layers."""
  for head in heads:
    bins = [part for name, part in head.named_buffers() if name == "bins.returns"]
    for part in bins or head.parameters():
      part.mul_(factor)


def value_head(width: int, kind: Critic) -> ScalarHead | TwohotHead:
  """Return the head of a kind for features [..., width]."""
  return TwohotHead(width) if kind is Critic.twohot else ScalarHead(width)


class TwinLinear(nn.Module):
  """Two linear layers as one product: [2 or 1, n, inputs] to [2, n, outputs]."""

  def __init__(self, first: nn.Linear, second: nn.Linear) -> None:
    super().__init__()
    self.weight = nn.Parameter(torch.stack([first.weight.T, second.weight.T]).detach())
    self.bias = nn.Parameter(torch.stack([first.bias, second.bias]).detach().unsqueeze(1))

  def forward(self, x: Tensor) -> Tensor:
    """Return the outputs [2, n, outputs] for inputs [2, n, inputs]."""
    return torch.baddbmm(self.bias, x, self.weight)


class Beside(nn.Module):
  """Any two modules, one after the other: [2, n, inputs] to [2, n, outputs]."""

  def __init__(self, first: nn.Module, second: nn.Module) -> None:
    super().__init__()
    self.pair = nn.ModuleList([first, second])

  def forward(self, x: Tensor) -> Tensor:
    """Return the outputs [2, n, outputs] for inputs [2, n, inputs]."""
    return torch.stack([own(part) for own, part in zip(self.pair, x.unbind(), strict=True)])


def twin(first: nn.Module, second: nn.Module) -> nn.Module:
  """Return one module for two of the same form, of torch's layers: [2, n, inputs] to [2, n, outputs]."""
  if isinstance(first, nn.Sequential) and isinstance(second, nn.Sequential):
    return nn.Sequential(*(twin(*layers) for layers in zip(first, second, strict=True)))
  if isinstance(first, nn.Linear) and isinstance(second, nn.Linear):
    return TwinLinear(first, second)
  return Beside(first, second) if [*first.parameters()] else first


class TwinScalarHead(nn.Module):
  """Two scalar heads: features [2, n, width] to two values [2, n]."""

  def __init__(self, width: int) -> None:
    super().__init__()
    self.output = TwinLinear(*(ScalarHead(width).output for _ in range(2)))

  def forward(self, features: Tensor) -> ScalarValue:
    """Return the values [2, n] for features [2, n, width]."""
    # A product with a result of one column takes 4 times as long on a CPU, forward and backward.
    values = (features * self.output.weight.mT).sum(-1)
    return ScalarValue(values + self.output.bias.squeeze(-1))


class TwinTwohotHead(nn.Module):
  """Two two-hot heads: features [2, n, width] to two distributions [2, n] of the return."""

  def __init__(self, width: int) -> None:
    super().__init__()
    first, second = (TwohotHead(width) for _ in range(2))
    self.output, self.bins = TwinLinear(first.output, second.output), first.bins

  def forward(self, features: Tensor) -> TwohotValue:
    """Return the distributions [2, n] of the return for features [2, n, width]."""
    return TwohotValue(self.output(features), self.bins)


def twin_head(width: int, kind: Critic) -> TwinScalarHead | TwinTwohotHead:
  """Return two heads of a kind for features [2, n, width]."""
  return TwinTwohotHead(width) if kind is Critic.twohot else TwinScalarHead(width)
