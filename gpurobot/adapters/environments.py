"""Common base of the adapters: the environments of a task, by its name, with reset by seed."""

from collections.abc import Mapping
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from tensordict import TensorDict
from torch import Tensor

import tasks
from gpurobot.device.defaults import own_defaults
from gpurobot.device.distributed import World
from gpurobot.learn.env import images_of
from gpurobot.learn.random import Random
from gpurobot.settings.config import MOST_ENVS, assign
from tasks.base import Task


def is_count(number: Any) -> bool:
  """Return whether this is a Python or NumPy integer from 1 to MOST_ENVS."""
  return not isinstance(number, bool) and isinstance(number, Integral) and 1 <= int(number) <= MOST_ENVS


class Environments:
  """`num_envs` environments of a task (a name for `tasks.load`), with `settings` of its Config.

  With `training=True` they are as in training: with noise, delays and the task's other randomisation, and
  with first episodes at random phases. Otherwise they are as in `gpurobot.evaluate`.
  Raises ValueError if the task, the number, a setting or the device is not valid.
  """

  def __init__(
    self, task: str, num_envs: int, device: str | torch.device, training: bool, settings: Mapping[str, Any]
  ) -> None:
    if not is_count(num_envs):
      raise ValueError(f"num_envs={num_envs!r} is not a whole number from 1 to {MOST_ENVS}")
    if not isinstance(task, str):
      raise ValueError(f"task={task!r} is not a name: write a task's name or file")
    module = tasks.load(task)
    config = assign(module.Config(), settings)
    self.num_envs, self.device = num_envs, World().device(str(device))
    self._build = partial(module.Task, config, num_envs, self.device, training=training)
    self._make(0)
    self.started = False  # whether `reset` has been called
    self.images = {name: own for name, own in images_of(self.task).items() if "policy" in own.groups}
    self.observation_space = self._observations()
    self.action_space: spaces.Space[Any] = spaces.Box(-1.0, 1.0, (self.task.num_actions,), np.float32)
    if self.task.choices:
      self.action_space = spaces.MultiDiscrete(self.task.choices)

  def _observations(self) -> spaces.Space[Any]:
    """Return the space of the policy's observations: numbers, or a Dict of "obs" and the images."""
    width = self.task.obs_dims["policy"]
    numbers = spaces.Box(-np.inf, np.inf, (width,), np.float32)
    if not self.images:
      return numbers
    images: dict[str, spaces.Space[Any]] = {
      name: spaces.Box(image.low, image.high, image.shape, np.dtype(image.kind))
      for name, image in self.images.items()
    }
    return spaces.Dict(({"obs": numbers} if width else {}) | images)

  def policy(self, groups: TensorDict) -> Tensor | dict[str, Tensor]:
    """Return the policy's observations of a step, as in `observation_space`."""
    numbers: Tensor = groups["policy"]
    if not self.images:
      return numbers
    return ({"obs": numbers} if numbers.shape[1] else {}) | {name: groups[name] for name in self.images}

  def require_numbers(self, library: str) -> None:
    """Raise ValueError if the task observes images, which the adapter of a library does not pass on."""
    for name in images_of(self.task):
      raise ValueError(
        f"the task observes images ('{name}'), which the adapter for {library} does not pass on: use the "
        "adapter for Gymnasium or TorchRL"
      )

  @own_defaults(autocast=True)
  def reset(self, seed: int | None = None) -> TensorDict:
    """Start new episodes in all environments; return the observation groups, [num_envs, width] each.

    With a seed the environments start as if newly made with it: all history, such as curriculum levels, is
    dropped. Without a seed the random numbers and the history continue.
    """
    if seed is not None:
      self.task.load_state_dict(self._new)
    if seed not in (None, self._seed):
      self._make(seed, **({"simulation": self.task.sim} if isinstance(self.task, Task) else {}))
    self.started = True
    groups: TensorDict = self.task.reset()
    return groups

  @own_defaults(autocast=True)
  def _make(self, seed: int, **options: Any) -> None:
    """Make the task with a seed; some of its randomisation is drawn only once, at construction."""
    self.task: Any = self._build(random=Random(seed, self.num_envs, 0, self.device), **options)
    self._seed, self._new = seed, self.task.state_dict()

  @own_defaults(autocast=True)
  def step(self, action: Tensor) -> TensorDict:
    """Step as `VecEnv.step` does; add `ended` [num_envs] bool: the episode ended with this step.

    Other libraries have no weight for transitions, so a diverged one becomes a termination with reward 0.
    Raises ValueError unless the actions are numbers of the shape [num_envs, num_actions]: int for choices,
    none of them nan. On a GPU their values are not read, and nan ends the episode as diverged.
    """
    self._check(action)
    step: TensorDict = self.task.step(action.detach().to(self.device))
    step["terminated"] = step["terminated"] | ~step["valid"]
    step["ended"] = step["terminated"] | step["truncated"]
    return step

  def _check(self, action: Tensor) -> None:
    """Raise ValueError unless these are actions of the environments."""
    if action.shape != (self.num_envs, self.task.num_actions):
      wanted = [self.num_envs, self.task.num_actions]
      raise ValueError(f"actions have the shape {list(action.shape)}; the environments expect {wanted}")
    if action.is_complex() or action.layout is not torch.strided or action.is_meta:
      raise ValueError(f"actions are {action.dtype} on {action.device}, {action.layout}: give real numbers")
    if self.task.choices and (action.is_floating_point() or action.dtype is torch.bool):
      raise ValueError(f"actions are {action.dtype}; the choices of the environments are int")
    if action.device.type != "cpu":
      return
    counts = torch.tensor(self.task.choices) if self.task.choices else None
    if counts is not None and ((action < 0) | (action >= counts)).any():
      raise ValueError(f"actions are choices from 0 to less than {counts.tolist()}; some are not")
    if action.isnan().any():
      env = int(action.isnan().any(1).to(torch.uint8).argmax())
      raise ValueError(f"the action of environment {env} is nan: look where it is computed")


def as_action(values: Any) -> Tensor:
  """Return actions as a tensor; raise ValueError if they are no numbers."""
  try:
    return values if isinstance(values, Tensor) else torch.as_tensor(values, device="cpu")
  except (TypeError, ValueError, RuntimeError) as error:
    raise ValueError(f"actions are not numbers: {' '.join(str(error).split())}") from error


def logged(step: TensorDict) -> dict[str, Tensor]:
  """Return the reward terms, metrics and `is_success` of a step, [num_envs] each."""
  terms = {f"reward_{name}": term for name, term in step["reward_terms"].items()}
  success = step.get("success", None)
  return {**terms, **step["metrics"], **({} if success is None else {"is_success": success})}
