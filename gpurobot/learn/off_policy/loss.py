"""Losses of SAC and TD3, as pure functions of tensors.

Haarnoja et al. 2018, arXiv 1812.05905, and Fujimoto et al. 2018, arXiv 1802.09477.
"""

import torch
from torch import Tensor

from gpurobot.learn.critic import ValuePrediction

# Names of the sums that the losses return, over samples by weight; the first is the sum of the weights.
CRITIC_SUMS = ("weight", "value_loss", "value/mean", "sample_age")
SAC_SUMS = ("weight", "policy_loss", "entropy", "action/std")
TD3_SUMS = ("weight", "policy_loss")


def joint(values: ValuePrediction, *, clipped: bool) -> Tensor:
  """Return the value [n] that two critics' values [2, n] count as: if `clipped` the smaller, else the mean.

  The best of many values with errors is too large. The smaller of two is not, and may be too small (clipped
  double Q-learning; Fujimoto et al. 2018).
  """
  return torch.minimum(*values.value.unbind()) if clipped else values.value.mean(0)


def target(reward: Tensor, discount: Tensor, value: Tensor) -> Tensor:
  """Return what the critics learn [n]: reward + discount value.

  reward [n]: the transformed rewards of the steps. discount [n]: of the value after them, 0 where the task
  terminated. value [n]: after them, of the target critics, with the weighted entropy in SAC.
  """
  return reward + torch.where(discount > 0, discount * value, 0)


def critic_loss(
  values: ValuePrediction, value: Tensor, return_: Tensor, age: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
  """Return the loss of both critics, a scalar, its sums by weight [len(CRITIC_SUMS)], and errors [n].

  values [2, n]: theirs. value [n]: their joint value, for the errors. return_ [n]: what they
  learn. age [n]: steps since the transitions. weight [n]: against the bias of the draw, 0 if invalid.
  """
  losses = values.loss(return_)
  with torch.no_grad():
    sums = torch.stack([torch.ones_like(return_), losses.mean(0), value, age]) @ weight
  return losses.sum(0) @ weight, sums, return_ - value


def sac_terms(
  value: Tensor, alpha: Tensor, log_prob: Tensor, log_std: Tensor, weight: Tensor
) -> tuple[dict[str, Tensor], Tensor]:
  """Return the terms -value and alpha log_prob [n] of the policy's loss, and its sums [len(SAC_SUMS)].

  value [n]: of new actions. log_prob [n] [nat]: theirs. log_std [n, A]: the policy's. alpha [1]. weight [n]:
  1, or 0 if invalid.
  """
  terms = {"value": -value, "entropy": alpha * log_prob}
  with torch.no_grad():
    loss = terms["entropy"] - value
    parts = [torch.ones_like(loss), loss, -log_prob, log_std.exp().mean(-1)]
    sums = torch.stack(parts) @ weight
  return terms, sums


def td3_terms(value: Tensor, weight: Tensor) -> tuple[dict[str, Tensor], Tensor]:
  """Return the term -value [n] of the policy's loss, and its sums [len(TD3_SUMS)].

  value [n]: of new actions. weight [n]: 1, or 0 if invalid.
  """
  return {"value": -value}, torch.stack([weight.sum(), -value.detach() @ weight])


def temperature_loss(log_alpha: Tensor, log_prob: Tensor, target_entropy: float, weight: Tensor) -> Tensor:
  """Return the sum by weight of -alpha (log_prob + target_entropy): alpha grows where the entropy is less.

  log_alpha [1]; log_prob [n] [nat] without a gradient; target_entropy [nat].
  """
  return -(log_alpha.exp() * (log_prob + target_entropy)) @ weight
