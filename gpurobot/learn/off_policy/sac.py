"""Soft actor-critic (SAC; Haarnoja et al. 2018, arXiv 1812.05905).

    repeat:
      in N environments: draw a from pi(. | s); observe r and s'; store (s, a, r, s') in the replay buffer
      for each of G gradient steps, on a random batch of the buffer:
        draw a' from pi(. | s'); y = r + gamma (Q'(s', a') - alpha log pi(a' | s'))
        Q1, Q2: minimise (Q_i(s, a) - y)^2; target networks: Q_i' = (1 - tau) Q_i' + tau Q_i
        in every d-th step, draw a from pi(. | s):
          pi: minimise alpha log pi(a | s) - Q(s, a)
          alpha: minimise -alpha (log pi(a | s) + target entropy)

Q is the mean of Q1 and Q2, or the smaller of them.
"""

from typing import Any

import torch
from torch import Tensor, nn

from gpurobot.device.distributed import World
from gpurobot.learn.distribution import Gaussian
from gpurobot.learn.env import VecEnv
from gpurobot.learn.off_policy.base import OffPolicy, PolicyLoss
from gpurobot.learn.off_policy.loss import SAC_SUMS, sac_terms, temperature_loss
from gpurobot.settings.config import ConfigError, TrainConfig


class Temperature(nn.Module):
  """Logarithm [1] of the temperature alpha, the weight of the entropy."""

  def __init__(self, alpha: float, dtype: torch.dtype) -> None:
    super().__init__()
    self.log_alpha = nn.Parameter(torch.full((1,), alpha, dtype=dtype).log())


class SAC(OffPolicy):
  """One rank's part of SAC: a policy of high value and high entropy; the entropy's weight alpha adapts."""

  sums = SAC_SUMS
  noises = ("sac.next_action", "sac.new_action")

  def __init__(self, env: VecEnv, config: TrainConfig, world: World) -> None:
    """Build policy, critics, temperature and replay buffer; see `OffPolicy`."""
    sac = config.sac
    if sac.log_std_init <= sac.log_std_min:
      raise ConfigError(
        f"sac.log_std_init={sac.log_std_init:g} must be greater than sac.log_std_min={sac.log_std_min:g}"
      )
    super().__init__(env, config, world)
    self.target_entropy = sac.target_entropy * env.num_actions
    self.temperature = Temperature(sac.alpha, self.network.dtype).to(env.device)
    self.optimizers["temperature"] = self.make_optimizer(self.temperature, ("weight",))

  @property
  def alpha(self) -> Tensor:
    """The temperature [1], without a gradient."""
    return self.temperature.log_alpha.detach().exp()

  def explore(self, policy: Gaussian) -> Tensor:
    """Return actions that the policy draws."""
    return policy.action(policy.sample(self.collector.random))

  def next_action(self, policy: Gaussian) -> tuple[Tensor, Tensor]:
    """Return actions that the policy draws, and their entropy, weighted by the temperature."""
    noise = self.batch.noise["sac.next_action"]
    sample = policy.shift(noise)
    return sample.tanh(), -self.alpha * policy.log_prob_of(noise, sample)

  def rescale(self, factor: Tensor) -> None:
    """Multiply values and temperature by a factor [1]: the entropy is part of the values."""
    super().rescale(factor)
    self.temperature.log_alpha.add_(factor.log())

  def policy_loss(self) -> PolicyLoss:
    """Return the loss of policy and temperature, which share no weights."""
    policy, weight = self.network(self.batch.obs), self.batch.weight
    noise = self.batch.noise["sac.new_action"]
    sample = policy.shift(noise)
    log_prob, value = policy.log_prob_of(noise, sample), self.evaluate(sample.tanh())
    terms, sums = sac_terms(value, self.alpha, log_prob, policy.log_std, weight)
    log_alpha = self.temperature.log_alpha
    other = temperature_loss(log_alpha, log_prob.detach(), self.target_entropy, weight)
    return PolicyLoss(policy, value, terms, sums, other)

  def report(self) -> dict[str, Tensor]:
    """Return the statistics since the last report as scalars on the device; every rank calls."""
    return super().report() | {"temperature": self.alpha}

  @property
  def modules(self) -> dict[str, Any]:
    """The networks besides the policy's, by their names in a checkpoint."""
    return super().modules | {"temperature": self.temperature}
