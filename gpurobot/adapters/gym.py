"""Gymnasium adapter: a task as a vector environment or as a single environment.

`gpurobot/adapters/registration.py` registers them: `gymnasium.make_vec("gpurobot/Ant-v0", num_envs=8)`.
"""

from enum import StrEnum
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from tensordict import TensorDict
from torch import Tensor

from gpurobot import extras
from gpurobot.adapters.environments import Environments, as_action, logged

SEEDS = 2**31  # upper bound of the random seed of a first reset without a seed
PIXELS = 480  # width and height of a rendered frame


class Output(StrEnum):
  """Array type that `step` and `reset` return."""

  numpy = "numpy"
  torch = "torch"  # on the task's device, without synchronisation


class TaskVectorEnv(VectorEnv[Any, Any, Any]):
  """Vector environment of a task; each environment resets in the step that ends its episode (SAME_STEP).

  `settings` are fields of the task's Config, such as `episode_steps=200`. `training=True` adds noise, delays,
  pushes and first episodes at random phases, as in gpurobot's own training.

  An observation is [num_envs, width]; with images it is a dictionary of them by name
  [num_envs, height, width, channels], uint8 or float16, with "obs" for the numbers, if there are any.

  `info` holds `reward_<term>` (weighted), the task's metrics and `is_success` for the environments with
  a continuing episode, and `info["final_info"]` for the others. As is usual in Gymnasium, a mask
  `_x` [num_envs] says for which environments `x` is valid. With output=numpy `final_obs` is an object array
  of observations and None. With output=torch it is [num_envs, width], taken before the resets and always
  present, so that the host need not wait to learn whether an episode ended.
  """

  def __init__(
    self,
    num_envs: int = 1,
    *,
    task: str,
    device: str = "cpu",
    output: Output | str = Output.numpy,
    training: bool = False,
    **settings: Any,
  ) -> None:
    self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
    if output not in list(Output):
      raise ValueError(f"output={output}: write one of {', '.join(Output)}")
    self._output = Output(output)
    self.environments = Environments(task, num_envs, device, training, settings)
    self.num_envs = num_envs
    self.single_observation_space = self.environments.observation_space
    self.single_action_space = self.environments.action_space
    self.observation_space = batch_space(self.single_observation_space, num_envs)
    self.action_space = batch_space(self.single_action_space, num_envs)

  def reset(
    self, *, seed: int | None = None, options: dict[str, Any] | None = None
  ) -> tuple[Any, dict[str, Any]]:
    """Start new episodes in all environments; return the observations [num_envs, width] and an empty info.

    One seed serves all environments. There are no options.
    """
    super().reset(seed=seed)
    groups = self.environments.reset(_seed(self, seed, options))
    return self._out(self.environments.policy(groups)), {}

  def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """Step with actions [num_envs, num_actions]: arrays or tensors in [-1, 1], or int for discrete actions.

    Returns observations [num_envs, width]; reward, terminated and truncated [num_envs] each; info.
    """
    step = self.environments.step(as_action(actions))
    keys = "reward", "terminated", "truncated"
    reward, terminated, truncated = (self._out(step[key]) for key in keys)
    obs = self._out(self.environments.policy(step["obs"]))
    return obs, reward, terminated, truncated, self._info(step)

  def _info(self, step: TensorDict) -> dict[str, Any]:
    entries, ended = logged(step), step["ended"]
    info = self._where(entries, ~ended)
    final = self.environments.policy(step["final_obs"])
    if self._output is Output.torch:
      return info | {
        "final_obs": final,
        "_final_obs": ended,
        "final_info": self._where(entries, ended),
        "_final_info": ended,
      }
    mask = ended.cpu().numpy()
    if mask.any():
      last = np.full(self.num_envs, None, dtype=object)
      for index in np.flatnonzero(mask):
        last[index] = _one(final, int(index))
      info |= {"final_obs": last, "_final_obs": mask}
      info |= {"final_info": self._where(entries, ended), "_final_info": mask.copy()}
    return info

  def _where(self, entries: dict[str, Tensor], mask: Tensor) -> dict[str, Any]:
    """Return the entries [num_envs], zero where `mask` [num_envs] is false, and a mask for each."""
    values = {name: self._out(value.masked_fill(~mask, 0)) for name, value in entries.items()}
    return values | {f"_{name}": self._out(mask.clone()) for name in entries}

  def _out(self, obs: Tensor | dict[str, Tensor]) -> Any:
    if isinstance(obs, dict):
      return {name: self._out(part) for name, part in obs.items()}
    return obs if self._output is Output.torch else obs.cpu().numpy()


class TaskEnv(gymnasium.Env[Any, Any]):
  """Single environment of a task, with NumPy arrays; `TaskVectorEnv` is the fast one.

  `info` holds `reward_<term>` (weighted), the task's metrics, and `is_success`. With
  `render_mode="rgb_array"` it renders frames, as `gpurobot.record` does.
  """

  metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (Gymnasium reads the class attribute)

  def __init__(
    self,
    *,
    task: str,
    device: str = "cpu",
    training: bool = False,
    render_mode: str | None = None,
    **settings: Any,
  ) -> None:
    if render_mode not in (None, "rgb_array"):
      raise ValueError(f"render_mode={render_mode}: the tasks support only 'rgb_array'")
    self.environments = Environments(task, 1, device, training, settings)
    self.observation_space = self.environments.observation_space
    self.action_space = self.environments.action_space
    self.render_mode = render_mode
    if render_mode:
      self.metadata = {**self.metadata, "render_fps": round(1 / self.environments.task.dt)}
    self._camera: Any = None
    self._next: TensorDict | None = None  # first observation of the episode that the last step began

  def reset(
    self, *, seed: int | None = None, options: dict[str, Any] | None = None
  ) -> tuple[Any, dict[str, Any]]:
    """Start a new episode; return the observation [width] and an empty info. There are no options."""
    super().reset(seed=seed)
    seed = _seed(self, seed, options)
    groups = self.environments.reset(seed) if seed is not None or self._next is None else self._next
    self._next = None
    return _one(self.environments.policy(groups), 0), {}

  def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
    """Step with an action [num_actions] in [-1, 1], or int for discrete actions.

    Returns the observation [width], before any reset; reward, terminated, truncated; info.
    """
    step = self.environments.step(as_action(action).unsqueeze(0))
    self._next = step["obs"] if step["ended"] else None
    reward, terminated, truncated = (step[name].item() for name in ("reward", "terminated", "truncated"))
    info = {name: value.item() for name, value in logged(step).items()}
    obs = _one(self.environments.policy(step["final_obs"]), 0)
    return obs, reward, terminated, truncated, info

  def render(self) -> NDArray[np.uint8]:
    """Return a frame [PIXELS, PIXELS, 3] of a camera that follows the robot.

    After the last step of an episode it shows the first state of the next one. Raises ConfigError without a
    renderer.
    """
    if self.render_mode is None:
      raise ValueError('render() needs gymnasium.make(..., render_mode="rgb_array")')
    if self._camera is None:
      with extras.require_extra("viewer"):
        from gpurobot.viewer.offscreen import Camera  # noqa: PLC0415
      self._camera = Camera(self.environments.task, 1, PIXELS, PIXELS)
    frame: NDArray[np.uint8] = self._camera.shoot()
    return frame

  def close(self) -> None:
    """Release the renderer."""
    if self._camera is not None:
      self._camera.close()
      self._camera = None


def _seed(env: TaskVectorEnv | TaskEnv, seed: int | None, options: dict[str, Any] | None) -> int | None:
  """Return the given seed, a random one at a first reset without a seed, or None to continue."""
  if options:
    raise ValueError(f"reset(options={options}): the tasks have no options; pass settings to make(...)")
  if seed is None and not env.environments.started:
    return int(env.np_random.integers(SEEDS))
  return seed


def _one(obs: Tensor | dict[str, Tensor], index: int) -> Any:
  """Return the observation of one environment: an array [width], or arrays by name."""
  if isinstance(obs, dict):
    return {name: _one(part, index) for name, part in obs.items()}
  return obs[index].cpu().numpy()
