"""Sum of the task's reward and the learned ones, from which a policy learns."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gpurobot.learn.discriminator import StyleReward
from gpurobot.learn.learned_reward import LearnedReward, Training
from gpurobot.learn.rnd import NoveltyReward
from gpurobot.learn.statistics import Means


class RewardSum:
  """The task's reward plus the learned rewards that the settings ask for, by weight; often there are none."""

  def __init__(self, training: Training) -> None:
    """Build the learned rewards; raise ConfigError if the environments lack what they need."""
    ppo, self.rollout = training.config.ppo, training.rollout
    self.rewards: list[LearnedReward] = []
    if ppo.rnd.weight or ppo.rnd.weight_final:
      self.rewards.append(NoveltyReward(training))
    if ppo.amp.style_weight:
      self.rewards.append(StyleReward(training))
    self.task_weight = ppo.amp.task_weight if ppo.amp.style_weight else 1.0
    reward = self.rollout.samples["reward"]
    self.means = [Means("the learned rewards", reward.device)] if self.rewards else []
    self._weights = [reward.new_zeros(1) for _ in self.rewards]

  def add(self, steps: int) -> None:
    """Replace the task's rewards in the rollout by the weighted sums, after `steps` environment steps."""
    for one, weight in zip(self.rewards, self._weights, strict=True):
      weight.fill_(one.weight(steps))
    for one in self.rewards[:1]:
      one.executor.run(self._add)

  @torch.no_grad()
  def _add(self) -> None:
    """Add the rewards by weight, and measure each one's share of the sum of all magnitudes."""
    reward, valid = self.rollout.samples["reward"], self.rollout.samples["valid"]
    reward.mul_(self.task_weight)
    parts = [
      torch.where(valid, weight * one.reward(), 0)
      for one, weight in zip(self.rewards, self._weights, strict=True)
    ]
    sizes = torch.stack([part.abs().mean() for part in (reward, *parts)])
    shares = sizes / sizes.sum().clamp(min=torch.finfo(sizes.dtype).tiny)
    measures: dict[str, Tensor] = {}
    for one, part, share in zip(self.rewards, parts, shares[1:], strict=True):
      reward.add_(part)
      measures |= {f"{one.name}/reward": part.mean(), f"{one.name}/share": share}
    self.means[0].add_scalars(measures)

  def train(self) -> None:
    """Train the networks on the rollout; every rank calls."""
    for one in self.rewards:
      one.train()

  def report(self) -> dict[str, Tensor]:
    """Return what the networks' training says since the last report, scalars by name, over all ranks."""
    return {name: value for one in self.rewards for name, value in one.report().items()}

  def state_dict(self) -> dict[str, Any]:
    """Return the complete state of all ranks by reward; every rank calls."""
    return {one.name: one.state_dict() for one in self.rewards}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from a saved state; a reward that it lacks starts anew."""
    for one in self.rewards:
      if one.name in state:
        one.load_state_dict(state[one.name])
