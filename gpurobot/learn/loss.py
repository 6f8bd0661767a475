"""PPO's loss, reward transforms and schedules, as pure functions of tensors."""

import torch
from tensordict import TensorDictBase
from torch import Tensor

from gpurobot.config import PPOConfig, RewardTransform, Scaling
from gpurobot.learn.critic import ValuePrediction
from gpurobot.learn.distribution import Distribution
from gpurobot.learn.normalize import symlog

# What `loss` adds up beside its gradient, each weighted by the sample's weight; the weights come first.
SUMS = ("weight", "kl", "policy_loss", "value_loss", "bounds_loss", "mirror_loss", "entropy", "clipped")


def loss(
  policies: tuple[Distribution, Distribution],
  value: ValuePrediction,
  batch: TensorDictBase,
  ppo: PPOConfig,
  entropy_coef: Tensor,
  mirrored: Tensor | None,
) -> tuple[Tensor, Tensor]:
  """Return the objective to minimise, summed over the samples by weight, and its parts' sums [len(SUMS)].

  policies: the present one and the rollout's. value: the present one. batch [...]: action and log_prob of the
  rollout, its value and the return_ (both normalised), the advantage (standardised), and weight (0 where
  invalid, else 1). mirrored [..., num_actions]: what the present policy does in a mirror, mirrored back.
  """
  policy, old = policies
  ratio = (policy.log_prob(batch["action"]) - batch["log_prob"]).exp()
  near = ratio.clamp(1 - ppo.clip, 1 + ppo.clip)
  policy_loss = -torch.minimum(ratio * batch["advantage"], near * batch["advantage"])
  value_loss = value.loss(batch["return_"], batch["value"], ppo.value_clip)
  bounds_loss = policy.bounds().expand_as(ratio)
  with torch.set_grad_enabled(bool(ppo.entropy_coef or ppo.entropy_coef_final)):  # most of squashing's cost
    entropy = policy.entropy().expand_as(ratio)
  mirror_loss = torch.zeros_like(ratio)
  if mirrored is not None:
    mirror_loss = (policy.mode() - mirrored).square().sum(-1)
  objective = policy_loss + ppo.critic_coef * value_loss + ppo.bounds_coef * bounds_loss
  objective = objective + ppo.mirror_coef * mirror_loss - entropy_coef * entropy
  weight = batch["weight"].flatten()
  with torch.no_grad():
    ones, beyond = torch.ones_like(ratio), (ratio != near).to(ratio.dtype)
    parts = [ones, old.divergence(policy), policy_loss, value_loss, bounds_loss, mirror_loss, entropy, beyond]
    sums = torch.stack(parts).flatten(1) @ weight
  return objective.flatten() @ weight, sums


def transform(reward: Tensor, ppo: PPOConfig) -> Tensor:
  """Return what is learned from in the place of raw rewards."""
  if ppo.reward_transform is RewardTransform.none:
    return reward
  scaled = reward * ppo.reward_scale
  return symlog(scaled) if ppo.reward_transform is RewardTransform.symlog else scaled


def adapt(rate: Tensor, kl: Tensor, target: float, limits: tuple[float, float]) -> Tensor:
  """Return the learning rate, moved by a factor of 1.5 where the divergence leaves [target / 2, 2 target]."""
  factor = torch.where(kl > 2 * target, 1 / 1.5, torch.where(kl < 0.5 * target, 1.5, 1.0))  # nan: 1
  return (rate * factor).clamp(*limits)


def rate_scale(ppo: PPOConfig, num_envs: int) -> float:
  """Return the factor on learning rates for a minibatch of num_envs environments (over all ranks).

  Adam's noise per step stays the same under the square root (Malladi et al. 2022, arXiv 2205.10287).
  """
  times = num_envs * ppo.horizon / ppo.minibatches / ppo.reference_minibatch
  return times ** {Scaling.none: 0, Scaling.sqrt: 0.5, Scaling.linear: 1}[ppo.lr_scaling]


def rate_limits(ppo: PPOConfig, num_envs: int) -> tuple[float, float]:
  """Return the limits of the adaptive learning rate for a minibatch of num_envs environments."""
  scale = rate_scale(ppo, num_envs)
  return ppo.lr_min * scale, ppo.lr_max * scale


def entropy_weight(ppo: PPOConfig, steps: int) -> float:
  """Return the weight of the entropy bonus after so many environment steps."""
  if ppo.entropy_coef_final is None:
    return ppo.entropy_coef
  done = min(steps / ppo.entropy_steps, 1.0)
  return ppo.entropy_coef + done * (ppo.entropy_coef_final - ppo.entropy_coef)
