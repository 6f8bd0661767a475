"""A trained policy for use: observations in, actions out."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gpurobot.config import PPOConfig
from gpurobot.learn.agent import Agent, Spaces
from gpurobot.learn.distribution import Distribution
from gpurobot.learn.random import Random


class Policy:
  """The policy of a checkpoint, with a memory of `num_envs` environments if it has one.

  It acts without noise unless `random` is there to draw its actions with.
  """

  random: Random | None = None

  def __init__(self, saved: Mapping[str, Any], ppo: PPOConfig, num_envs: int, device: torch.device) -> None:
    """Rebuild the agent from the "learner" part of a checkpoint."""
    self.agent = Agent(Spaces.saved(saved), ppo, device)
    self.agent.load_state_dict(saved)
    self._state = self.agent.start(num_envs)

  @torch.no_grad()
  def __call__(self, obs: Mapping[str, Tensor], restart: Tensor) -> Tensor:
    """Return actions [num_envs, num_actions], float32 or int64, for observation groups.

    restart [num_envs] bool: where an episode starts with these observations.
    """
    policy = self.distribution(obs, restart)
    if self.random is None:
      return policy.action(policy.mode()).squeeze(0)
    self.random.advance()
    return policy.action(policy.sample(self.random)).squeeze(0)

  @torch.no_grad()
  def distribution(self, obs: Mapping[str, Tensor], restart: Tensor) -> Distribution:
    """Return what the policy says of observation groups, [1, num_envs]; its memory moves on."""
    policy, state = self.agent.act(obs, self._state, restart)
    self._state[:, : state.shape[1]] = state
    return policy
