"""The tasks as environments of rl_games, under the name `gpurobot`."""

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
  """Environments of a task: in rl_games's configuration `num_actors` says how many, `env_config` the rest.

  `settings` are fields of the task's Config. `training` as in `Environments`. Where the critic sees more, it
  is the `states` of a central value.
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
    self.seed(seed)

  def reset(self) -> dict[str, Tensor]:
    """Start new episodes everywhere."""
    return _groups(self.environments.reset())

  def step(self, actions: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor, dict[str, Any]]:
    """Step; `time_outs` of the infos tells where the time limit ended an episode."""
    step = self.environments.step(actions)
    return _groups(step["obs"]), step["reward"], step["ended"], {"time_outs": step["truncated"]}

  def get_env_info(self) -> dict[str, Any]:
    """Return the spaces."""
    space, width = self.environments.action_space, self.environments.task.obs_dims.get("critic")
    if isinstance(space, spaces.MultiDiscrete):
      space = spaces.Tuple([spaces.Discrete(int(count)) for count in space.nvec])
    info = {"observation_space": self.environments.observation_space, "action_space": space}
    return (
      info if width is None else info | {"state_space": spaces.Box(-np.inf, np.inf, (width,), np.float32)}
    )

  def seed(self, seed: int) -> None:
    """Start new episodes from a seed."""
    self.environments.reset(seed)


def register() -> None:
  """Tell rl_games the name."""
  vecenv.register(NAME, lambda _name, num_actors, **settings: RlGamesEnv(num_envs=num_actors, **settings))
  env_configurations.register(NAME, {"vecenv_type": NAME})


def _groups(obs: TensorDict) -> dict[str, Tensor]:
  critic = obs.get("critic", None)
  return {"obs": obs["policy"]} | ({} if critic is None else {"states": critic})
