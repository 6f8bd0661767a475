"""The tasks as environments of rsl_rl."""

from typing import Any

from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor

from gpurobot.adapters.environments import Environments, logged


class RslRlEnv(VecEnv):
  """Environments of a task for `OnPolicyRunner`, with the observation groups `policy` and maybe `critic`.

  `settings` are fields of the task's Config. `training` as in `Environments`; first episodes then start at
  random phases, so that `learn` need not be told to.
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
    if self.environments.task.choices:
      raise ValueError(f"task '{task}' has choices; rsl_rl's PPO has continuous actions alone")
    self.num_envs, self.num_actions = num_envs, self.environments.task.num_actions
    self.device = self.environments.device
    self.cfg = self.environments.task.config
    self.max_episode_length = self.environments.task.max_episode_steps
    self._obs = self.environments.reset(seed)

  @property
  def episode_length_buf(self) -> Tensor:
    """Control steps since the episodes' starts [num_envs] int64."""
    steps: Tensor = self.environments.task.episode_steps
    return steps

  @episode_length_buf.setter
  def episode_length_buf(self, steps: Tensor) -> None:
    self.environments.task.episode_steps.copy_(steps)

  def get_observations(self) -> TensorDict:
    """Return the present observation groups [num_envs, width]."""
    return self._obs

  def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
    """Step; `time_outs` tells where the time limit struck, `log` has means of reward terms and metrics."""
    step = self.environments.step(actions)
    self._obs = step["obs"]
    log = {f"/{name}": value.float().mean() for name, value in logged(step).items() if name != "is_success"}
    return self._obs, step["reward"], step["ended"], {"time_outs": step["truncated"], "log": log}
