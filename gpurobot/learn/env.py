"""Protocol of vectorised environments: tensors in, TensorDict out, no synchronisation with the host."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from tensordict import TensorDict
from torch import Tensor

STYLE = "style"  # observation group of the features that a style reward compares with a reference


class Image(NamedTuple):
  """Image among the observations: [num_envs, *shape], shared by the groups that see it."""

  shape: tuple[int, int, int]  # height, width, channels
  kind: str  # uint8 or float16
  low: float  # smallest number that it can have
  high: float  # largest number
  groups: tuple[str, ...]  # those that see it

  @property
  def dtype(self) -> torch.dtype:
    """Its type, in the environments and in storage."""
    return torch.uint8 if self.kind == "uint8" else torch.float16

  def stored(self, raw: Tensor) -> Tensor:
    """Return an image [n, *shape] in that type; numbers outside of the range are cut off."""
    return raw if self.kind == "uint8" else raw.clamp(self.low, self.high).to(self.dtype)

  @property
  def bytes(self) -> int:
    """Memory of one [bytes]."""
    return math.prod(self.shape) * self.dtype.itemsize

  def __str__(self) -> str:
    return f"{'x'.join(map(str, self.shape))} {self.kind}"


@runtime_checkable
class VecEnv(Protocol):
  """`num_envs` environments of one rank, stepped as one batch; a step resets those whose episode ended.

  What has a value here is optional for environments that derive from it; others declare it in their class.
  """

  num_envs: int  # number of environments on this rank: the `local_envs` of the trainer
  device: torch.device
  num_actions: int
  choices: tuple[int, ...]  # number of choices of each discrete action; empty for continuous actions
  # Width of each group that an agent observes: "policy", and maybe "critic"; 0 if it sees images alone.
  # `reset` and `step` may show more groups: "teacher", what the policy of a teacher saw, for distillation;
  # "style", for a style reward.
  obs_dims: dict[str, int]
  max_episode_steps: int
  least_between_truncations: int  # smallest number of steps between two truncations of an environment
  # Mirror symmetry of "policy" and "action": (index, sign), [width] each; the mirror image of x is
  # sign * x[..., index]. None if the robot has no plane of symmetry.
  mirror: Mapping[str, tuple[Tensor, Tensor]] | None

  # Set by the trainer; the environments call it with "physics" or "task", the part that the timers count.
  begin_part: Callable[[str], None]

  @property
  def images(self) -> Mapping[str, tuple[Any, ...]]:
    """Images among the observations by name, with the fields of `Image`."""
    return {}

  @property
  def obs_names(self) -> Mapping[str, list[str]]:
    """Name of the block of each column by observation group."""
    return {}

  @property
  def hidden(self) -> Mapping[str, str]:
    """Blocks that the policy lacks, and the setting that shows each of them, or ""."""
    return {}

  @property
  def identity(self) -> Mapping[str, Any]:
    """Names of actions, joints and controls, in order, and digests of the model; see `identity.names_of`."""
    return {}

  @property
  def left_out(self) -> Sequence[str]:
    """Features of the robot's file that the engine does not simulate."""
    return ()

  @property
  def style_reference(self) -> Tensor | None:
    """Pairs of successive states of a reference motion [n, 2, width], on the device.

    The group "style" [num_envs, width] in obs and final_obs has the same features of the present state,
    without noise. It is not one of `obs_dims`.
    """
    return None

  def reset(self) -> TensorDict:
    """Start new episodes; return the observation groups, float32 [num_envs, width] each, and the images.

    An image [num_envs, height, width, channels] has its own name beside the groups, and the type that
    `Image.dtype` says. Its numbers are in its range, which normalises it; one that is not finite counts as in
    any observation.
    """

  def step(self, action: Tensor) -> TensorDict:
    """Step with actions [num_envs, num_actions]; return entries with the batch size [num_envs].

    Continuous actions are float32, clipped to [-1, 1]; discrete actions are int64 indices of the choices.

    obs: groups and images after the resets, the observation for the next action.
    final_obs: groups and images before the resets; equal to obs where no episode ended.
    reward: float32 [num_envs], the raw weighted sum. reward_terms: its terms by name, [num_envs] each.
    terminated: bool [num_envs], the task ended the episode. truncated: bool [num_envs], only the time limit
      ended it; an environment is truncated at most once in any least_between_truncations steps.
    valid: bool [num_envs], False if the transition diverged: it has no weight, and its environment was reset.
    metrics: quantities to log, by name, [num_envs] each (may be empty).
    success: bool [num_envs], an episode ended with success (only if the task defines success).
    """

  def teacher_index(self, count: int) -> Tensor | None:  # noqa: ARG002 (a task may need it)
    """Return which of `count` teachers teaches each environment [num_envs] int64; None: equal shares."""
    return None

  def counters(self) -> dict[str, Tensor]:
    """Return cumulative counts since the start, by name, as scalars on the device."""

  def diverged(self) -> TensorDict:
    """Return the last states of environments that diverged since the last call, for a file.

    Entries of n environments: env [n], the index on this rank; states by name and reward [n, length, ...];
    steps [n], how many of the last rows belong to the last episode; varied, by name, [n, ...]: the model
    fields that vary between environments.
    """

  def state_dict(self) -> dict[str, Any]:
    """Return the complete state."""

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Continue from a saved state."""


def images_of(env: VecEnv) -> dict[str, Image]:
  """Return the images by name; a task has a type of its own with the same fields."""
  return {name: Image(*image) for name, image in env.images.items()}
