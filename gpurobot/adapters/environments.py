"""The start of every adapter: environments of a task by its name, which any seed starts anew."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from tensordict import TensorDict
from torch import Tensor

import tasks
from gpurobot.config import assign
from gpurobot.device.distributed import World
from gpurobot.learn.random import Random
from tasks.base import Task


class Environments:
  """`num_envs` environments of a task, a name for `tasks.load`, with some of its settings changed.

  With `training` they are what a policy of this package is trained in: with noise, delays and whatever else
  a task keeps from evaluations, and at random phases of their first episodes. Without, they are what
  `gpurobot.evaluate` measures it in. Raises ValueError where task, setting or device do not fit.
  """

  def __init__(
    self, task: str, num_envs: int, device: str | torch.device, training: bool, settings: Mapping[str, Any]
  ) -> None:
    module = tasks.load(task)
    config = assign(module.Config(), settings)
    self.num_envs, self.device = num_envs, World().device(str(device))
    self._build = partial(module.Task, config, num_envs, self.device, training=training)
    self._make(0)
    self.started = False  # whether `reset` has been called
    self.observation_space = spaces.Box(-np.inf, np.inf, (self.task.obs_dims["policy"],), np.float32)
    self.action_space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (self.task.num_actions,), np.float32)
    if self.task.choices:
      self.action_space = spaces.MultiDiscrete(self.task.choices)

  def reset(self, seed: int | None = None) -> TensorDict:
    """Start new episodes everywhere and return the observation groups [num_envs, width].

    A seed makes the environments what they would be if they had been made with it: what they have been
    through, levels of a curriculum too, is forgotten. Without one they go on.
    """
    if seed is not None:
      self.task.load_state_dict(self._new)
    if seed not in (None, self._seed):
      self._make(seed, **({"simulation": self.task.sim} if isinstance(self.task, Task) else {}))
    self.started = True
    groups: TensorDict = self.task.reset()
    return groups

  def _make(self, seed: int, **options: Any) -> None:
    """Make the task with a seed: some of what differs between environments is drawn then, once."""
    self.task: Any = self._build(random=Random(seed, self.num_envs, 0, self.device), **options)
    self._seed, self._new = seed, self.task.state_dict()

  def step(self, action: Tensor) -> TensorDict:
    """Step as `VecEnv.step` says, and add `ended` [num_envs] bool: where an episode ended with this step.

    Other libraries know no transition without weight. One that diverged terminates for them, with reward 0.
    Raises ValueError for actions of another shape than [num_envs, num_actions].
    """
    if action.shape != (self.num_envs, self.task.num_actions):
      wanted = [self.num_envs, self.task.num_actions]
      raise ValueError(f"actions have the shape {list(action.shape)}; the environments take {wanted}")
    step: TensorDict = self.task.step(action.detach().to(self.device))
    step["terminated"] = step["terminated"] | ~step["valid"]
    step["ended"] = step["terminated"] | step["truncated"]
    return step


def logged(step: TensorDict) -> dict[str, Tensor]:
  """Return what a step tells beside the reward, [num_envs] each: its terms, metrics, and `is_success`."""
  terms = {f"reward_{name}": term for name, term in step["reward_terms"].items()}
  success = step.get("success", None)
  return {**terms, **step["metrics"], **({} if success is None else {"is_success": success})}
