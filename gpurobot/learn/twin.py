"""Twin networks: two of one form, whose weights lie side by side, so that each operation serves both."""

import torch
from torch import Tensor, nn

from gpurobot.algorithm_config import Critic
from gpurobot.learn.critic import ScalarHead, ScalarValue, TwohotHead, TwohotValue


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
    # A product whose result is one column takes 4 times as long on a CPU, forward and backward.
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
