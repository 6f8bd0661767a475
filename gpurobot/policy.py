"""A trained policy for use: observations in, actions out."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from gpurobot.config import PPO
from gpurobot.network import ActorCritic, resolve
from gpurobot.normalize import Observations


class Policy:
  """The deterministic policy of a checkpoint: the mean action."""

  def __init__(self, saved: Mapping[str, Any], ppo: PPO, device: torch.device) -> None:
    """Rebuild network and moments from the "learner" part of a checkpoint."""
    precision = resolve(ppo.precision, device)
    self.network = ActorCritic(saved["obs_dims"], saved["num_actions"], ppo, precision).to(device)
    self.network.load_state_dict(saved["network"])
    dtypes = (self.network.dtype, self.network.input_dtype)
    self.observations = Observations(saved["obs_dims"], device, dtypes, ppo.normalize_obs)
    self.observations.load_state_dict(saved["observations"])

  @torch.no_grad()
  def __call__(self, obs: Mapping[str, Tensor]) -> Tensor:
    """Return actions [num_envs, num_actions], float32, for observation groups."""
    return self.network.act(self.observations(obs)).float()
