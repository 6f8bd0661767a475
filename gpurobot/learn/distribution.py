"""Action distributions, and the policy heads that compute them from features.

[...] are arbitrary batch dimensions; A is the number of actions. Log probabilities are of a *sample*;
`action` converts it to the action for the environment.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from gpurobot.learn.layers import linear
from gpurobot.learn.random import Random
from gpurobot.settings.algorithms import PPOConfig
from gpurobot.settings.config import ConfigError

BOUND = 1.1  # means beyond it are penalised; the environment clips actions to 1
QUIET = 0.01  # gain of the output layer: the initial policy hardly depends on the observation
_TAU = math.log(2 * math.pi)


class Distribution(Protocol):
  """Action distribution for a batch [...] of observations."""

  @property
  def parameters(self) -> Tensor:
    """The parameters [..., num_parameters] from which the head's `old` rebuilds this distribution."""

  def sample(self, random: Random) -> Tensor:
    """Return a sample [..., A], drawn with the numbers of the current step of `random`."""

  def mode(self) -> Tensor:
    """Return the sample [..., A] of the policy without noise."""

  def action(self, sample: Tensor) -> Tensor:
    """Return the actions [..., A] of samples [..., A]: float32, or int64 for discrete actions."""

  def log_prob(self, sample: Tensor) -> Tensor:
    """Return the log density or log probability [...] [nat] of the actions of samples [..., A]."""

  def entropy(self) -> Tensor:
    """Return the entropy [...] [nat], or a scalar if it is the same for all."""

  def divergence(self, other: Self) -> Tensor:
    """Return the Kullback-Leibler divergence KL(self || other) [...] [nat]."""

  def bounds(self) -> Tensor:
    """Return the squared excess of the means beyond +-BOUND, summed over the actions: [...] or a scalar."""

  def spread(self) -> Tensor:
    """Return the mean standard deviation before squashing, a scalar; nan for discrete actions."""


def _dot(x: Tensor, weight: Tensor) -> Tensor:
  """Return the sum of x [..., A] * weight [A] or [..., A] over the last dimension."""
  return x @ weight if weight.dim() == 1 else (x * weight).sum(-1)  # a matrix product is faster


@dataclass(frozen=True)
class Gaussian:
  """Independent normal distributions: mean [..., A]; log_std [A], shared by the batch, or [..., A]."""

  mean: Tensor
  log_std: Tensor

  @property
  def parameters(self) -> Tensor:
    """The mean [..., A], or mean and log_std [..., 2 A] if log_std depends on the observation."""
    return self.mean if self.log_std.dim() == 1 else torch.cat([self.mean, self.log_std], -1)

  def sample(self, random: Random) -> Tensor:
    """Return a sample [..., A], not clipped."""
    return self.shift(random.normal("ppo.action", self.mean.shape[-1:]))

  def shift(self, noise: Tensor) -> Tensor:
    """Return the sample [..., A] of standard normal noise [..., A]; it has a gradient."""
    return self.mean + self.log_std.exp() * noise

  def log_prob_of(self, noise: Tensor, sample: Tensor) -> Tensor:  # noqa: ARG002 (squashed ones need it)
    """Return `log_prob` [...] [nat] of the sample `shift(noise)`, both [..., A], in fewer operations."""
    return -0.5 * noise.square().sum(-1) - self.log_std.sum(-1) - 0.5 * _TAU * noise.shape[-1]

  def mode(self) -> Tensor:
    """Return the mean [..., A]."""
    return self.mean

  def action(self, sample: Tensor) -> Tensor:
    """Return the samples [..., A] in float32; the environment clips them."""
    return sample.float()

  def log_prob(self, sample: Tensor) -> Tensor:
    """Return the log density [...] [nat] of samples [..., A]."""
    squares = _dot((sample - self.mean).square(), (-2 * self.log_std).exp())
    return -0.5 * squares - self.log_std.sum(-1) - 0.5 * _TAU * sample.shape[-1]

  def entropy(self) -> Tensor:
    """Return the differential entropy [nat], a scalar or [...]; it does not depend on the mean."""
    return self.log_std.sum(-1) + 0.5 * (1 + _TAU) * self.log_std.shape[-1]

  def divergence(self, other: Self) -> Tensor:
    """Return KL(self || other) [nat], [...]."""
    inverse = (-2 * other.log_std).exp()
    spread = (2 * self.log_std).exp() * inverse - 1 + 2 * (other.log_std - self.log_std)
    return 0.5 * (_dot((self.mean - other.mean).square(), inverse) + spread.sum(-1))

  def bounds(self) -> Tensor:
    """Return the squared excess [...] of the means beyond +-BOUND, summed over the actions."""
    return functional.softshrink(self.mean, BOUND).square().sum(-1)

  def spread(self) -> Tensor:
    """Return the mean standard deviation, a scalar."""
    return self.log_std.exp().mean()

  def reflect(self, index: Tensor, sign: Tensor) -> Self:
    """Return the distribution [...] of sign * x[..., index] for samples x; index and sign are [A]."""
    return dataclasses.replace(self, mean=sign * self.mean[..., index], log_std=self.log_std[..., index])


class Squashed(Gaussian):
  """Normal distributions squashed by tanh.

  Samples are stored before the tanh: ratios and divergences, which it does not change, need no inverse.
  """

  def action(self, sample: Tensor) -> Tensor:
    """Return the actions [..., A] of samples [..., A], in [-1, 1]."""
    return sample.tanh().float()

  def log_prob(self, sample: Tensor) -> Tensor:
    """Return the log density [...] [nat] of the squashed actions of samples [..., A]."""
    return super().log_prob(sample) - _log_slope(sample).sum(-1)

  def log_prob_of(self, noise: Tensor, sample: Tensor) -> Tensor:
    """Return `log_prob` [...] [nat] of the sample `shift(noise)`, both [..., A], in fewer operations."""
    return super().log_prob_of(noise, sample) - _log_slope(sample).sum(-1)

  def entropy(self) -> Tensor:
    """Return the differential entropy [...] [nat] of the squashed actions.

    The mean log slope of tanh is computed by the trapezoidal rule, which converges exponentially (Trefethen
    and Weideman 2014): its error is below 1e-4 for standard deviations up to 1, below 5e-3 up to 2.
    """
    nodes = torch.linspace(-4, 4, 11, dtype=self.mean.dtype, device=self.mean.device)
    weights = (-0.5 * nodes.square()).softmax(0)
    mean, std = self.mean.unsqueeze(-1), self.log_std.exp().unsqueeze(-1)
    soft = functional.softplus(torch.addcmul(-2 * mean, -2 * std, nodes)) @ weights  # mean of softplus(-2 u)
    return super().entropy() + 2 * (math.log(2) - self.mean - soft).sum(-1)

  def bounds(self) -> Tensor:
    """Return 0, a scalar: squashed actions have no bounds to exceed."""
    return self.mean.new_zeros(())


def _log_slope(u: Tensor) -> Tensor:
  """Return log(1 - tanh(u)^2) for u [...], without cancellation for large |u|."""
  return 2 * (math.log(2) - u - functional.softplus(-2 * u))


class MultiDiscrete:
  """Independent discrete actions, sizes[i] choices each: logits [..., sum(sizes)], samples int64 [..., A]."""

  def __init__(self, logits: Tensor, sizes: Sequence[int]) -> None:
    self.parameters = logits
    parts = logits.split(list(sizes), -1)
    self.log_p = [part.log_softmax(-1) for part in parts]  # of each action [..., sizes[i]]

  def sample(self, random: Random) -> Tensor:
    """Return samples int64 [..., A], by inversion of the cumulative probabilities."""
    uniform = random.uniform("ppo.action", (len(self.log_p),)).unsqueeze(-1).unbind(-2)
    # Without the last edge: it is 1, but may round to less.
    edges = [log_p.exp().cumsum(-1)[..., :-1] for log_p in self.log_p]
    return torch.stack([(u >= edge).sum(-1) for u, edge in zip(uniform, edges, strict=True)], -1)

  def mode(self) -> Tensor:
    """Return the most likely choices, int64 [..., A]."""
    return torch.stack([log_p.argmax(-1) for log_p in self.log_p], -1)

  def action(self, sample: Tensor) -> Tensor:
    """Return the samples, int64 [..., A]."""
    return sample

  def log_prob(self, sample: Tensor) -> Tensor:
    """Return the log probability [...] [nat] of samples int64 [..., A]."""
    pairs = zip(self.log_p, sample.split(1, -1), strict=True)
    return torch.cat([log_p.gather(-1, choice) for log_p, choice in pairs], -1).sum(-1)

  def entropy(self) -> Tensor:
    """Return the entropy [...] [nat]."""
    return torch.stack([-(log_p.exp() * log_p).sum(-1) for log_p in self.log_p]).sum(0)

  def divergence(self, other: Self) -> Tensor:
    """Return KL(self || other) [nat], [...]."""
    pairs = zip(self.log_p, other.log_p, strict=True)
    return torch.stack([(p.exp() * (p - q)).sum(-1) for p, q in pairs]).sum(0)

  def bounds(self) -> Tensor:
    """Return 0, a scalar: discrete actions have no bounds."""
    return self.parameters.new_zeros(())

  def spread(self) -> Tensor:
    """Return nan, a scalar: discrete actions have no standard deviation."""
    return self.parameters.new_full((), math.nan)


class ActionHead(nn.Module):
  """Output layer of an actor: features [..., width] to a Distribution [...]."""

  num_parameters: int  # width of a distribution's `parameters`
  sample_dtype: torch.dtype | None = None  # dtype of samples; None: the weights' dtype

  def forward(self, features: Tensor) -> Distribution:
    """Return the action distribution [...] for features [..., width]."""
    raise NotImplementedError

  def old(self, parameters: Tensor) -> Distribution:
    """Return the rollout's distribution [...] from its stored parameters [..., num_parameters]."""
    raise NotImplementedError

  def remember(self) -> None:
    """Store, before a rollout, the weights that `old` needs besides the stored parameters."""

  def project(self) -> None:
    """Move the weights back into their limits after an optimiser step."""


class GaussianHead(ActionHead):
  """Head for continuous actions, squashed or not; log_std is one weight per action."""

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
    """Return the action distribution [...] for features [..., width]."""
    return self.kind(self.output(features), self.log_std)

  def old(self, parameters: Tensor) -> Gaussian:
    """Return the rollout's distribution [...] from its means [..., A]."""
    return self.kind(parameters, self.old_log_std)

  @torch.no_grad()
  def remember(self) -> None:
    """Store the current log_std."""
    self.old_log_std.copy_(self.log_std)

  @torch.no_grad()
  def project(self) -> None:
    """Clamp log_std to its minimum; its gradient is not clamped."""
    self.log_std.clamp_(min=self.log_std_min)


class StateGaussianHead(ActionHead):
  """Head for continuous actions, squashed or not; log_std depends on the observation, as the mean does.

  It is log_std_min + softplus(x): it approaches its minimum without losing its gradient.
  """

  def __init__(
    self, width: int, num_actions: int, log_std_init: float, log_std_min: float, kind: type[Gaussian]
  ) -> None:
    super().__init__()
    self.kind = kind
    self.num_parameters = 2 * num_actions
    self.output = linear(width, 2 * num_actions, QUIET)
    self.log_std_min = log_std_min
    self.start = math.log(math.expm1(log_std_init - log_std_min))  # x of log_std_init

  def forward(self, features: Tensor) -> Gaussian:
    """Return the action distribution [...] for features [..., width]."""
    mean, x = self.output(features).chunk(2, -1)
    return self.kind(mean, self.log_std_min + functional.softplus(x + self.start))

  def old(self, parameters: Tensor) -> Gaussian:
    """Return the rollout's distribution [...] from its means and log_std [..., 2 A]."""
    return self.kind(*parameters.chunk(2, -1))


class NoisyHead(ActionHead):
  """Head for continuous actions squashed by tanh, with normal noise of a given scale around them."""

  log_std: Tensor

  def __init__(self, width: int, num_actions: int, noise: float) -> None:
    super().__init__()
    self.num_parameters = num_actions
    self.output = linear(width, num_actions, QUIET)
    self.register_buffer("log_std", torch.full((num_actions,), noise).log(), persistent=False)

  def forward(self, features: Tensor) -> Gaussian:
    """Return the action distribution [...] for features [..., width]."""
    return self.old(self.output(features).tanh())

  def old(self, parameters: Tensor) -> Gaussian:
    """Return the rollout's distribution [...] from its means [..., A]."""
    return Gaussian(parameters, self.log_std)


class DiscreteHead(ActionHead):
  """Head for discrete actions with sizes[i] choices each."""

  sample_dtype = torch.int64

  def __init__(self, width: int, sizes: Sequence[int]) -> None:
    super().__init__()
    self.sizes = tuple(sizes)
    self.num_parameters = sum(sizes)
    self.output = linear(width, self.num_parameters, QUIET)

  def forward(self, features: Tensor) -> MultiDiscrete:
    """Return the action distribution [...] for features [..., width]."""
    return self.old(self.output(features))

  def old(self, parameters: Tensor) -> MultiDiscrete:
    """Return the rollout's distribution [...] from its logits [..., sum(sizes)]."""
    return MultiDiscrete(parameters, self.sizes)


def action_head(width: int, num_actions: int, choices: Sequence[int], ppo: PPOConfig) -> ActionHead:
  """Return the head for features [..., width].

  `choices` has the number of choices of each discrete action; it is empty for continuous actions. Raises
  ConfigError unless log_std starts above its minimum.
  """
  if choices:
    return DiscreteHead(width, choices)
  if ppo.log_std_init <= ppo.log_std_min:
    raise ConfigError(
      f"ppo.log_std_init={ppo.log_std_init:g} must be greater than ppo.log_std_min={ppo.log_std_min:g}"
    )
  if ppo.state_std:
    kind = Squashed if ppo.squash else Gaussian
    return StateGaussianHead(width, num_actions, ppo.log_std_init, ppo.log_std_min, kind)
  return GaussianHead(width, num_actions, ppo)
