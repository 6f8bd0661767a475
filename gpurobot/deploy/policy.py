"""A trained policy for use: observations in, actions out."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gpurobot.config import PPOConfig
from gpurobot.learn.distribution import Distribution
from gpurobot.learn.network import ActorCritic, resolve
from gpurobot.learn.normalize import Observations
from gpurobot.learn.random import Random


class Policy:
  """The policy of a checkpoint, with a memory of `num_envs` environments if it has one.

  It acts without noise unless `random` is there to draw its actions with.
  """

  random: Random | None = None

  def __init__(self, saved: Mapping[str, Any], ppo: PPOConfig, num_envs: int, device: torch.device) -> None:
    """Rebuild network and moments from the "learner" part of a checkpoint."""
    precision = resolve(ppo.precision, device)
    dims = saved["obs_dims"]
    self.network = ActorCritic(dims, saved["num_actions"], tuple(saved["choices"]), ppo, precision).to(device)
    self.network.load_state_dict(saved["network"])
    dtypes = (self.network.dtype, self.network.input_dtype)
    self.observations = Observations(dims, device, dtypes, ppo.normalize_obs)
    self.observations.load_state_dict(saved["observations"])
    self._state = torch.zeros(num_envs, self.network.state_width, dtype=self.network.dtype, device=device)

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
    batch = {group: x.unsqueeze(0) for group, x in self.observations(obs).items()}
    policy, state = self.network.act(batch, self._state, restart.unsqueeze(0))
    self._state[:, : state.shape[1]] = state
    return policy
