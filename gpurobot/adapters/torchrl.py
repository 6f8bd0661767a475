"""TorchRL adapter."""

from typing import Any

import torch
from tensordict import TensorDict, TensorDictBase
from torchrl.data import Binary, Bounded, Composite, MultiCategorical, Unbounded
from torchrl.envs import EnvBase

from gpurobot.adapters.environments import Environments
from gpurobot.learn.env import images_of

DONE = ("done", "terminated", "truncated")


class TorchRLEnv(EnvBase):
  """Environments of a task, batch size [num_envs], with the observation groups `policy` and maybe `critic`.

  `settings` are fields of the task's Config; `training` is as in `Environments`. Only the task ends an
  episode: for shorter episodes set its `episode_steps` rather than a StepCounter transform.
  """

  def __init__(
    self, task: str, num_envs: int, device: str = "cpu", training: bool = True, **settings: Any
  ) -> None:
    self.environments = Environments(task, num_envs, device, training, settings)
    super().__init__(device=self.environments.device, batch_size=[num_envs])
    self._start: int | None = None  # seed of the next full reset
    self._obs = TensorDict()  # observations after the resets of the last step
    self._new = torch.zeros(num_envs, dtype=torch.bool, device=self.device)  # they start an episode
    self._specify(num_envs)

  def _specify(self, count: int) -> None:
    """Declare the specs of observations, reward, done flags and actions."""
    task, here = self.environments.task, {"device": self.device}
    groups = {name: Unbounded((count, width), **here) for name, width in task.obs_dims.items()}
    for name, image in images_of(task).items():
      groups[name] = Bounded(image.low, image.high, (count, *image.shape), dtype=image.dtype, **here)
    self.observation_spec = Composite(groups, shape=[count], **here)
    self.reward_spec = Unbounded((count, 1), **here)
    self.done_spec = Composite(
      {name: Binary(1, (count, 1), dtype=torch.bool, **here) for name in DONE}, shape=[count], **here
    )
    self.action_spec = Bounded(-1.0, 1.0, (count, task.num_actions), **here)
    if task.choices:
      self.action_spec = MultiCategorical(task.choices, (count, task.num_actions), **here)

  def _reset(self, tensordict: TensorDictBase | None = None, **_: Any) -> TensorDictBase:
    """Start new episodes in all environments, or return those that the last step has already started."""
    which = None if tensordict is None else tensordict.get("_reset", None)
    if which is None or bool((which.squeeze(-1) & ~self._new).any()):
      if which is not None and not which.all():
        raise ValueError("a task resets ended episodes itself; for shorter episodes set episode_steps=...")
      self._obs, self._start = self.environments.reset(self._start), None
      self._new.fill_(True)
    return self._obs.clone()

  def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
    step = self.environments.step(tensordict["action"])
    self._obs, self._new = step["obs"], step["ended"]
    signals = {
      "reward": step["reward"],
      "done": step["ended"],
      "terminated": step["terminated"],
      "truncated": step["truncated"],
    }
    columns = {name: value.unsqueeze(-1) for name, value in signals.items()}
    return TensorDict({**step["final_obs"], **columns}, batch_size=self.batch_size, device=self.device)

  def _set_seed(self, seed: int | None) -> None:
    """Set the seed of the next full reset."""
    self._start = seed
