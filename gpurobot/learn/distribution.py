"""Action distributions, and the policy heads that make them from features.

Leading dimensions [...] are arbitrary, A is the number of actions. A *sample* is what probabilities are asked
of; `action` turns it into what the environment gets.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpurobot.config import ConfigError, PPOConfig
from gpurobot.learn.layers import linear
from gpurobot.learn.random import Random

BOUND = 1.1  # beyond which means are penalised: the environment clips actions to 1
QUIET = 0.01  # gain of the last layer: the first policy is all noise
_TAU = math.log(2 * math.pi)


class Distribution(Protocol):
  """A distribution of actions for each of [...] situations."""

  @property
  def parameters(self) -> Tensor:
    """What the head's `old` needs to rebuild this distribution, [..., num_parameters]."""

  def sample(self, random: Random) -> Tensor:
    """Return a sample [..., A] drawn from the present step's numbers of `random`, one situation each."""

  def mode(self) -> Tensor:
    """Return the sample [..., A] of a policy without noise."""

  def action(self, sample: Tensor) -> Tensor:
    """Return what the environment gets: float32 or, where it asks for choices, int64 [..., A]."""

  def log_prob(self, sample: Tensor) -> Tensor:
    """Return the log density or probability of the sample's action [nat], [...]."""

  def entropy(self) -> Tensor:
    """Return the entropy [nat], [...], or a scalar where it is the same for all."""

  def divergence(self, other: Self) -> Tensor:
    """Return the Kullback-Leibler divergence KL(self || other) [nat], [...]."""

  def bounds(self) -> Tensor:
    """Return the squared distance of means beyond +-BOUND, summed over the actions, [...] or a scalar."""

  def spread(self) -> Tensor:
    """Return the standard deviation, before any squashing, mean over all: a scalar; nan for choices."""


def _dot(x: Tensor, weight: Tensor) -> Tensor:
  """Return the sum of x [..., A] * weight [A] or [..., A] over the last dimension."""
  return x @ weight if weight.dim() == 1 else (x * weight).sum(-1)  # the product of matrices is faster


@dataclass(frozen=True)
class Gaussian:
  """Independent normal distributions: mean [..., A]; log_std [A], the same for all, or [..., A]."""

  mean: Tensor
  log_std: Tensor

  @property
  def parameters(self) -> Tensor:
    """The mean and, where it depends on the situation, log_std: [..., A] or [..., 2 A]."""
    return self.mean if self.log_std.dim() == 1 else torch.cat([self.mean, self.log_std], -1)

  def sample(self, random: Random) -> Tensor:
    """Return actions [..., A] before their limits."""
    return self.mean + self.log_std.exp() * random.normal("ppo.action", self.mean.shape[-1:])

  def mode(self) -> Tensor:
    """Return the mean."""
    return self.mean

  def action(self, sample: Tensor) -> Tensor:
    """Return the sample in float32; the environment clips it."""
    return sample.float()

  def log_prob(self, sample: Tensor) -> Tensor:
    """Return the log density of samples [nat], [...]."""
    squares = _dot((sample - self.mean).square(), (-2 * self.log_std).exp())
    return -0.5 * squares - self.log_std.sum(-1) - 0.5 * _TAU * sample.shape[-1]

  def entropy(self) -> Tensor:
    """Return the differential entropy [nat]: it does not depend on the mean."""
    return self.log_std.sum(-1) + 0.5 * (1 + _TAU) * self.log_std.shape[-1]

  def divergence(self, other: Self) -> Tensor:
    """Return KL(self || other) [nat], [...]."""
    inverse = (-2 * other.log_std).exp()
    spread = (2 * self.log_std).exp() * inverse - 1 + 2 * (other.log_std - self.log_std)
    return 0.5 * (_dot((self.mean - other.mean).square(), inverse) + spread.sum(-1))

  def bounds(self) -> Tensor:
    """Return the squared distance of means beyond +-BOUND, summed over the actions [...]."""
    return functional.softshrink(self.mean, BOUND).square().sum(-1)

  def spread(self) -> Tensor:
    """Return the standard deviation, mean over all."""
    return self.log_std.exp().mean()


class Squashed(Gaussian):
  """The hyperbolic tangent of normal distributions.

  A sample is kept before the tangent: ratios and divergences, which do not change under it, need no inverse.
  """

  def action(self, sample: Tensor) -> Tensor:
    """Return the actions, within [-1, 1]."""
    return sample.tanh().float()

  def log_prob(self, sample: Tensor) -> Tensor:
    """Return the log density of the squashed actions [nat], [...]."""
    return super().log_prob(sample) - _log_slope(sample).sum(-1)

  def entropy(self) -> Tensor:
    """Return the differential entropy of the squashed actions [nat], [...].

    The mean of the slope's logarithm is a sum over evenly spaced nodes, which converges exponentially
    (Trefethen and Weideman 2014): its error is below 1e-4 for standard deviations up to 1, 5e-3 up to 2.
    """
    nodes = torch.linspace(-4, 4, 11, dtype=self.mean.dtype, device=self.mean.device)
    weights = (-0.5 * nodes.square()).softmax(0)
    mean, std = self.mean.unsqueeze(-1), self.log_std.exp().unsqueeze(-1)
    soft = functional.softplus(torch.addcmul(-2 * mean, -2 * std, nodes)) @ weights  # mean of softplus(-2 u)
    return super().entropy() + 2 * (math.log(2) - self.mean - soft).sum(-1)

  def bounds(self) -> Tensor:
    """Return 0: no mean is out of bounds."""
    return self.mean.new_zeros(())


def _log_slope(u: Tensor) -> Tensor:
  """Return log(1 - tanh(u)^2) without cancellation for large |u|."""
  return 2 * (math.log(2) - u - functional.softplus(-2 * u))


class MultiDiscrete:
  """Independent choices, the i-th among sizes[i]: logits [..., sum of sizes], samples int64 [..., A]."""

  def __init__(self, logits: Tensor, sizes: Sequence[int]) -> None:
    self.parameters = logits
    parts = logits.split(list(sizes), -1)
    self.log_p = [part.log_softmax(-1) for part in parts]  # of each choice [..., sizes[i]]

  def sample(self, random: Random) -> Tensor:
    """Return choices [..., A], each the first whose cumulated probability exceeds a uniform number."""
    uniform = random.uniform("ppo.action", (len(self.log_p),)).unsqueeze(-1).unbind(-2)
    # Without the last edge, 1, which may round to less.
    edges = [log_p.exp().cumsum(-1)[..., :-1] for log_p in self.log_p]
    return torch.stack([(u >= edge).sum(-1) for u, edge in zip(uniform, edges, strict=True)], -1)

  def mode(self) -> Tensor:
    """Return the likeliest choices."""
    return torch.stack([log_p.argmax(-1) for log_p in self.log_p], -1)

  def action(self, sample: Tensor) -> Tensor:
    """Return the choices, int64."""
    return sample

  def log_prob(self, sample: Tensor) -> Tensor:
    """Return the log probability of choices [nat], [...]."""
    pairs = zip(self.log_p, sample.split(1, -1), strict=True)
    return torch.cat([log_p.gather(-1, choice) for log_p, choice in pairs], -1).sum(-1)

  def entropy(self) -> Tensor:
    """Return the entropy [nat], [...]."""
    return torch.stack([-(log_p.exp() * log_p).sum(-1) for log_p in self.log_p]).sum(0)

  def divergence(self, other: Self) -> Tensor:
    """Return KL(self || other) [nat], [...]."""
    pairs = zip(self.log_p, other.log_p, strict=True)
    return torch.stack([(p.exp() * (p - q)).sum(-1) for p, q in pairs]).sum(0)

  def bounds(self) -> Tensor:
    """Return 0: choices have no bounds."""
    return self.parameters.new_zeros(())

  def spread(self) -> Tensor:
    """Return nan: choices have no standard deviation."""
    return self.parameters.new_full((), math.nan)


class ActionHead(nn.Module):
  """The last layer of an actor: features [..., width] to a Distribution."""

  num_parameters: int  # width of a distribution's `parameters`
  sample_dtype: torch.dtype | None = None  # of samples; None: that of the weights

  def forward(self, features: Tensor) -> Distribution:
    """Return the distribution of the actions."""
    raise NotImplementedError

  def old(self, parameters: Tensor) -> Distribution:
    """Return the distribution of a rollout from what it kept [..., num_parameters]."""
    raise NotImplementedError

  def remember(self) -> None:
    """Note, before the first update on a rollout, what `old` needs beside the parameters kept."""

  def project(self) -> None:
    """Bring the weights back into their limits after a step of the optimiser."""


class GaussianHead(ActionHead):
  """Continuous actions, squashed or not; log_std is one weight for each."""

  old_log_std: Tensor

  def __init__(self, width: int, num_actions: int, ppo: PPOConfig) -> None:
    super().__init__()
    self.kind = Squashed if ppo.squash else Gaussian
    self.num_parameters = num_actions
    self.output = linear(width, num_actions, QUIET)
    self.log_std = nn.Parameter(torch.full((num_actions,), ppo.log_std_init))
    self.log_std_min = ppo.log_std_min
    self.register_buffer("old_log_std", self.log_std.detach().clone(), persistent=False)

  def forward(self, features: Tensor) -> Gaussian:
    """Return the distribution of the actions."""
    return self.kind(self.output(features), self.log_std)

  def old(self, parameters: Tensor) -> Gaussian:
    """Return the distribution of a rollout."""
    return self.kind(parameters, self.old_log_std)

  @torch.no_grad()
  def remember(self) -> None:
    """Note today's log_std."""
    self.old_log_std.copy_(self.log_std)

  @torch.no_grad()
  def project(self) -> None:
    """Keep log_std at or above its floor; gradients still flow there."""
    self.log_std.clamp_(min=self.log_std_min)


class StateGaussianHead(ActionHead):
  """Continuous actions, squashed or not; log_std depends on the features as the mean does.

  It is log_std_min + softplus(x): it nears its floor, and gradients still flow there.
  """

  def __init__(self, width: int, num_actions: int, ppo: PPOConfig) -> None:
    super().__init__()
    self.kind = Squashed if ppo.squash else Gaussian
    self.num_parameters = 2 * num_actions
    self.output = linear(width, 2 * num_actions, QUIET)
    self.log_std_min = ppo.log_std_min
    self.start = math.log(math.expm1(ppo.log_std_init - ppo.log_std_min))  # x of log_std_init

  def forward(self, features: Tensor) -> Gaussian:
    """Return the distribution of the actions."""
    mean, x = self.output(features).chunk(2, -1)
    return self.kind(mean, self.log_std_min + functional.softplus(x + self.start))

  def old(self, parameters: Tensor) -> Gaussian:
    """Return the distribution of a rollout."""
    return self.kind(*parameters.chunk(2, -1))


class DiscreteHead(ActionHead):
  """Choices among sizes[i] each."""

  sample_dtype = torch.int64

  def __init__(self, width: int, sizes: Sequence[int]) -> None:
    super().__init__()
    self.sizes = tuple(sizes)
    self.num_parameters = sum(sizes)
    self.output = linear(width, self.num_parameters, QUIET)

  def forward(self, features: Tensor) -> MultiDiscrete:
    """Return the distribution of the choices."""
    return self.old(self.output(features))

  def old(self, parameters: Tensor) -> MultiDiscrete:
    """Return the distribution of a rollout."""
    return MultiDiscrete(parameters, self.sizes)


def action_head(width: int, num_actions: int, choices: Sequence[int], ppo: PPOConfig) -> ActionHead:
  """Return the head for an environment: choices holds the number of choices of each action, or nothing.

  Raises ConfigError where log_std would start at or below its floor.
  """
  if choices:
    return DiscreteHead(width, choices)
  if ppo.log_std_init <= ppo.log_std_min:
    raise ConfigError(
      f"ppo.log_std_init={ppo.log_std_init:g} must lie above ppo.log_std_min={ppo.log_std_min:g}"
    )
  return (StateGaussianHead if ppo.state_std else GaussianHead)(width, num_actions, ppo)
