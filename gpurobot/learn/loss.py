"""PPO loss and schedules, as pure functions of tensors."""

import functools
import operator
from collections.abc import Mapping

import torch
from tensordict import TensorDictBase
from torch import Tensor

from gpurobot.learn.critic import ValuePrediction
from gpurobot.learn.distribution import Distribution, Gaussian
from gpurobot.settings.algorithms import PPOConfig, Scaling

# Names of the sums that `loss` returns, over samples by weight; the first is the sum of the weights.
SUMS = ("weight", "kl", "policy_loss", "value_loss", "bounds_loss", "mirror_loss", "entropy", "clipped")
LR_MIN = 1e-6  # smallest adaptive learning rate at the reference minibatch: far below any that learns


def surrogate(policy: Distribution, batch: TensorDictBase, clip: float) -> tuple[Tensor, Tensor]:
  """Return PPO's clipped objective [...] of a policy for the samples, and 1 where it is clipped, else 0."""
  ratio = (policy.log_prob(batch["action"]) - batch["log_prob"]).exp()
  near = ratio.clamp(1 - clip, 1 + clip)
  loss = -torch.minimum(ratio * batch["advantage"], near * batch["advantage"])
  return loss, (ratio != near).to(ratio.dtype)


def loss_terms(
  policies: tuple[Distribution, Distribution],
  value: ValuePrediction,
  batch: TensorDictBase,
  ppo: PPOConfig,
  entropy_coef: Tensor,
  mirrored: Gaussian | None,
) -> tuple[dict[str, Tensor], Tensor]:
  """Return the terms of the loss, weighted, for each sample [...], and sums of its parts [len(SUMS)].

  policies: the current one and the rollout's, [...] each. value [...]: the current one. batch [...]: action
  and log_prob of the rollout, value and return_ (both normalised), advantage (standardised), and weight (1,
  or 0 if invalid). mirrored [...]: the current policy for the mirrored observations, mirrored back: what it
  says of an action is what the current policy says of the action's mirror image.
  """
  policy, old = policies
  policy_loss, clipped = surrogate(policy, batch, ppo.clip)
  value_loss = value.loss(batch["return_"], batch["value"], ppo.value_clip)
  bounds_loss = policy.bounds().expand_as(policy_loss)
  with torch.set_grad_enabled(bool(ppo.entropy_coef or ppo.entropy_coef_final)):  # it is costly with squash
    entropy = policy.entropy().expand_as(policy_loss)
  mirror_loss = torch.zeros_like(policy_loss)
  if mirrored is not None:
    mirror_loss = (policy.mode() - mirrored.mode()).square().sum(-1)
  if mirrored is not None and ppo.mirror_augment:  # the mean over the samples and their mirror images
    policy_loss = (policy_loss + surrogate(mirrored, batch, ppo.clip)[0]) / 2
  terms = {
    "policy": policy_loss,
    "value": ppo.critic_coef * value_loss,
    "bounds": ppo.bounds_coef * bounds_loss,
    "mirror": ppo.mirror_coef * mirror_loss,
    "entropy": -entropy_coef * entropy,
  }
  weight = batch["weight"].flatten()
  with torch.no_grad():
    ones, divergence = torch.ones_like(policy_loss), old.divergence(policy)
    parts = [ones, divergence, policy_loss, value_loss, bounds_loss, mirror_loss, entropy, clipped]
    sums = torch.stack(parts).flatten(1) @ weight
  return terms, sums


def total(terms: Mapping[str, Tensor], weight: Tensor) -> Tensor:
  """Return the loss, a scalar: the sum of terms [...] over samples by weight [...]."""
  return functools.reduce(operator.add, terms.values()).flatten() @ weight.flatten()


def adapt(rate: Tensor, kl: Tensor, target: float, limits: tuple[float, float]) -> Tensor:
  """Return the learning rate (a scalar), changed by a factor of 1.5 if kl is not in [target / 2, 2 target].

  limits: its smallest and largest value.
  """
  factor = torch.where(kl > 2 * target, 1 / 1.5, torch.where(kl < 0.5 * target, 1.5, 1.0))  # 1 for nan
  return (rate * factor).clamp(*limits)


def rate_scale(ppo: PPOConfig, num_envs: int) -> float:
  """Return the factor on learning rates for the minibatch size of num_envs environments (over all ranks).

  The square root keeps the noise of Adam's steps constant (Malladi et al. 2022, arXiv 2205.10287).
  """
  times = num_envs * ppo.horizon / ppo.minibatches / ppo.reference_minibatch
  return times ** {Scaling.none: 0, Scaling.sqrt: 0.5, Scaling.linear: 1}[ppo.lr_scaling]


def rate_limits(ppo: PPOConfig, num_envs: int) -> tuple[float, float]:
  """Return the limits of the adaptive learning rate for the minibatch size of num_envs environments."""
  scale = rate_scale(ppo, num_envs)
  return LR_MIN * scale, ppo.lr_max * scale


def linear(first: float, last: float | None, length: int, steps: int) -> float:
  """Return a weight after `steps` environment steps: linear from `first` to `last` over `length` of them."""
  return first if last is None else first + min(steps / length, 1.0) * (last - first)
