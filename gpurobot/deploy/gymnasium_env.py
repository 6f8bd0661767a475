"""Gymnasium's own environments, unmodified, to evaluate policies of the tasks gym/*."""

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from tensordict import TensorDict
from torch import Tensor

PREFIX = "gym/"  # prefix of the tasks that are Gymnasium environments
METRICS = ("x_velocity",)  # entries of Gymnasium's info that those tasks log too


class GymnasiumEnv:
  """Gymnasium environments, stepped one by one on the CPU, with `reset` and `step` of `env.VecEnv`."""

  def __init__(self, task: str, num_envs: int, seed: int) -> None:
    """Make the environments of a task such as gym/Ant-v5.

    Raises ValueError if Gymnasium has no such environment, or a package that it needs is missing.
    """
    if not task.startswith(PREFIX):
      raise ValueError(f"engine=gymnasium is for policies of the tasks {PREFIX}*; this task is '{task}'")
    settings = {"autoreset_mode": AutoresetMode.SAME_STEP}
    try:
      self._envs = gymnasium.make_vec(
        task.removeprefix(PREFIX), num_envs, vectorization_mode="sync", vector_kwargs=settings
      )
    except (ImportError, gymnasium.error.Error) as error:
      raise ValueError(f"engine=gymnasium: {error}; pip install 'gymnasium[mujoco]'") from error
    self.num_envs, self.device, self._seed = num_envs, torch.device("cpu"), seed
    space: Any = self._envs.single_action_space
    self._middle, self._half = (space.high + space.low) / 2, (space.high - space.low) / 2

  def reset(self) -> TensorDict:
    """Start new episodes, the same at each call; return the observation groups, [num_envs, width] each."""
    obs, _ = self._envs.reset(seed=self._seed)
    return self._groups(obs)

  def step(self, action: Tensor) -> TensorDict:
    """Step with actions [num_envs, num_actions] in [-1, 1]; return the entries that `VecEnv.step` lists."""
    control = self._middle + self._half * action.clamp(-1.0, 1.0).cpu().numpy()
    obs, reward, terminated, truncated, info = self._envs.step(control)
    ended, last = terminated | truncated, info.get("final_info", {})
    final = obs.copy()
    if ended.any():
      final[ended] = np.stack(info["final_obs"][ended])
    metrics = {
      name: torch.from_numpy(np.where(ended, last.get(name, 0.0), info.get(name, 0.0)))
      for name in METRICS
      if name in info or name in last
    }
    result = {
      "obs": self._groups(obs),
      "final_obs": self._groups(final),
      "reward": torch.from_numpy(reward).float(),
      "reward_terms": {},
      "terminated": torch.from_numpy(terminated),
      "truncated": torch.from_numpy(truncated & ~terminated),
      "valid": torch.from_numpy(np.isfinite(final).all(1) & np.isfinite(reward)),
      "metrics": metrics,
    }
    return TensorDict(result, batch_size=[self.num_envs])

  def _groups(self, obs: NDArray[np.float64]) -> TensorDict:
    return TensorDict({"policy": torch.from_numpy(obs).float()}, batch_size=[self.num_envs])
