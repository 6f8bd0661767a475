"""Stable-Baselines3 adapter."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from gpurobot.adapters.environments import Environments, as_action

Indices = int | Iterable[int] | None
Step = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]


class StableBaselinesEnv(VecEnv):
  """Vector environment of a task for `PPO("MlpPolicy", env)`; VecMonitor around it logs returns and lengths.

  `settings` are fields of the task's Config; `training` is as in `Environments`.
  """

  def __init__(
    self, task: str, num_envs: int, device: str = "cpu", training: bool = True, **settings: Any
  ) -> None:
    self.render_mode = None
    self.environments = Environments(task, num_envs, device, training, settings)
    self.environments.require_numbers("Stable-Baselines3")
    super().__init__(num_envs, self.environments.observation_space, self.environments.action_space)
    self.seed()
    self._actions = torch.zeros(0)

  def reset(self) -> NDArray[np.float32]:
    """Start new episodes in all environments; return the observations [num_envs, width].

    After `seed(...)` the first environment's seed is the seed of them all.
    """
    groups = self.environments.reset(self._seeds[0])
    self._reset_seeds()
    return groups["policy"].cpu().numpy()

  def step_async(self, actions: NDArray[Any]) -> None:
    """Store actions [num_envs, num_actions] for `step_wait`."""
    self._actions = as_action(actions)

  def step_wait(self) -> Step:
    """Step; return observations [num_envs, width], reward [num_envs], done [num_envs] and infos.

    The info of an ended episode has `terminal_observation` [width] and `TimeLimit.truncated`.
    """
    step = self.environments.step(self._actions).cpu()
    final, truncated, ended = (step[key].numpy() for key in (("final_obs", "policy"), "truncated", "ended"))
    success = step.get("success", None)
    infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
    for index in np.flatnonzero(ended):
      infos[index] = {"terminal_observation": final[index], "TimeLimit.truncated": bool(truncated[index])}
      if success is not None:
        infos[index]["is_success"] = bool(success[index])
    return step["obs", "policy"].numpy(), step["reward"].numpy(), ended, infos

  def close(self) -> None:
    """Do nothing: there is nothing to close."""

  def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
    """Return an attribute, which all environments share, once per environment."""
    return [getattr(self, attr_name) for _ in self._get_indices(indices)]

  def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
    """Set an attribute of all environments; raise ValueError if `indices` selects only some."""
    self._require_all(indices)
    setattr(self, attr_name, value)

  def env_method(self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any) -> list[Any]:
    """Call a method of all environments at once; raise ValueError if `indices` selects only some."""
    self._require_all(indices)
    return [getattr(self, method_name)(*args, **kwargs)] * self.num_envs

  def env_is_wrapped(self, wrapper_class: type[Any], indices: Indices = None) -> list[bool]:  # noqa: ARG002
    """Return False for each environment: Gymnasium's wrappers apply to single environments."""
    return [False for _ in self._get_indices(indices)]

  def _require_all(self, indices: Indices) -> None:
    if len(self._get_indices(indices)) != self.num_envs:
      raise ValueError("the environments are one batch and cannot be selected; leave indices out")
