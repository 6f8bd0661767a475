"""rsl_rl adapter."""

from typing import Any

from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor

from gpurobot.adapters.environments import Environments, logged


class RslRlEnv(VecEnv):
  """Vector environment for `OnPolicyRunner`, with the observation groups `policy` and maybe `critic`.

  `settings` are fields of the task's Config; `training` is as in `Environments`. In training the first
  episodes start at random phases, so `learn` needs no init_at_random_ep_len.
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
    self.environments.require_numbers("rsl_rl")
    if self.environments.task.choices:
      raise ValueError(f"task '{task}' has discrete actions; rsl_rl's PPO supports only continuous actions")
    self.num_envs, self.num_actions = num_envs, self.environments.task.num_actions
    self.device = self.environments.device
    self.cfg = self.environments.task.config
    self.max_episode_length = self.environments.task.max_episode_steps
    self._obs = self.environments.reset(seed)

  @property
  def episode_length_buf(self) -> Tensor:
    """Control steps since the start of each episode [num_envs] int64."""
    steps: Tensor = self.environments.task.episode_steps
    return steps

  @episode_length_buf.setter
  def episode_length_buf(self, steps: Tensor) -> None:
    self.environments.task.episode_steps.copy_(steps)

  def get_observations(self) -> TensorDict:
    """Return the current observation groups, [num_envs, width] each."""
    return self._obs

  def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
    """Step with actions [num_envs, num_actions]; return observations, reward [num_envs], done, extras.

    The extras are `time_outs` [num_envs] bool, set where the time limit ended an episode, and `log`, the
    means of reward terms and metrics.
    """
    step = self.environments.step(actions)
    self._obs = step["obs"]
    log = {f"/{name}": value.float().mean() for name, value in logged(step).items() if name != "is_success"}
    return self._obs, step["reward"], step["ended"], {"time_outs": step["truncated"], "log": log}
