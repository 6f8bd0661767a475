"""Policy of a checkpoint: observations in, actions out."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gpurobot.learn.agent import restored
from gpurobot.learn.distribution import Distribution
from gpurobot.learn.random import Random
from gpurobot.settings.algorithms import AlgorithmConfig


class Policy:
  """The policy of a checkpoint, with the recurrent state of `num_envs` environments if it is recurrent.

  It acts without noise unless `random` is set; then it samples its actions.
  """

  random: Random | None = None

  def __init__(
    self, saved: Mapping[str, Any], settings: AlgorithmConfig, num_envs: int, device: torch.device
  ) -> None:
    """Rebuild the agent from the "learner" part of a checkpoint and the settings of its algorithm."""
    self.agent = restored(saved, settings, device)
    self._state = self.agent.start(num_envs)

  @torch.no_grad()
  def __call__(self, obs: Mapping[str, Tensor], restart: Tensor) -> Tensor:
    """Return actions [num_envs, num_actions], float32 or int64, for observation groups [num_envs, width].

    restart [num_envs] bool: an episode starts with these observations.
    """
    policy = self.distribution(obs, restart)
    if self.random is None:
      return policy.action(policy.mode()).squeeze(0)
    self.random.advance()
    return policy.action(policy.sample(self.random)).squeeze(0)

  @torch.no_grad()
  def distribution(self, obs: Mapping[str, Tensor], restart: Tensor) -> Distribution:
    """Return the action distribution [1, num_envs] for observation groups; advance the recurrent state."""
    policy, state = self.agent.act(obs, self._state, restart)
    self._state[:, : state.shape[1]] = state
    return policy
