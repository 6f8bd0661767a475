"""rl_games adapter, registered there as `gpurobot`."""

from typing import Any

import numpy as np
from gymnasium import spaces
from rl_games.common import env_configurations, vecenv
from rl_games.common.ivecenv import IVecEnv
from tensordict import TensorDict
from torch import Tensor

from gpurobot.adapters.environments import Environments

NAME = "gpurobot"


class RlGamesEnv(IVecEnv):
  """Vector environment of a task; rl_games sets `num_actors` (num_envs) and `env_config` (other arguments).

  `settings` are fields of the task's Config; `training` is as in `Environments`. The observation group
  "critic", if the task has it, becomes the `states` of a central value network.
  """

  def __init__(
    self,
    task: str,
    num_envs: int,
    device: str = "cpu",
    training: bool = True,
    seed: int = 0,
    **settings: Any,
  ) -> None:
    self.environments = Environments(task, num_envs, device, training, settings)
    self.environments.require_numbers("rl_games")
    self.seed(seed)

  def reset(self) -> dict[str, Tensor]:
    """Start new episodes in all environments; return obs and, if there are any, states [num_envs, width]."""
    return _groups(self.environments.reset())

  def step(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor, dict[str, Any]]:
    """Step with actions [num_envs, num_actions]; return observations, reward [num_envs], done, infos.

    `time_outs` [num_envs] bool of the infos marks episodes that the time limit ended.
    """
    step = self.environments.step(actions)
    return _groups(step["obs"]), step["reward"], step["ended"], {"time_outs": step["truncated"]}

  def get_env_info(self) -> dict[str, Any]:
    """Return the spaces of observations, actions and, if there are any, states."""
    space, width = self.environments.action_space, self.environments.task.obs_dims.get("critic")
    if isinstance(space, spaces.MultiDiscrete):
      space = spaces.Tuple([spaces.Discrete(int(count)) for count in space.nvec])
    info = {"observation_space": self.environments.observation_space, "action_space": space}
    return (
      info if width is None else info | {"state_space": spaces.Box(-np.inf, np.inf, (width,), np.float32)}
    )

  def seed(self, seed: int) -> None:
    """Start new episodes in all environments from a seed."""
    self.environments.reset(seed)


def register() -> None:
  """Register the environments with rl_games."""
  vecenv.register(NAME, lambda _name, num_actors, **settings: RlGamesEnv(num_envs=num_actors, **settings))
  env_configurations.register(NAME, {"vecenv_type": NAME})


def _groups(obs: TensorDict) -> dict[str, Tensor]:
  critic = obs.get("critic", None)
  return {"obs": obs["policy"]} | ({} if critic is None else {"states": critic})
