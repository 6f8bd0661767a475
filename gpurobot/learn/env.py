"""The contract between trainer and environments: tensors in, TensorDict out, nothing read by the host."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from tensordict import TensorDict
from torch import Tensor


@runtime_checkable
class VecEnv(Protocol):
  """`num_envs` environments of this rank, stepped as one batch; finished ones are reset within the step."""

  num_envs: int  # of this rank: the `local_envs` of the trainer
  device: torch.device
  num_actions: int
  choices: tuple[int, ...]  # empty where actions are continuous; else how many each action chooses between
  obs_dims: dict[str, int]  # width of each observation group: "policy", and "critic" where it sees more
  max_episode_steps: int
  least_between_truncations: int  # control steps, in one environment
  # How "policy" and "action" look in a mirror: sign * x[..., index], as (index, sign) [width] each; None
  # where the robot has no plane of symmetry.
  mirror: Mapping[str, tuple[Tensor, Tensor]] | None

  # Set by the trainer, for environments to call: what its time goes to from now on, "physics" or "task".
  begin_part: Callable[[str], None]

  def reset(self) -> TensorDict:
    """Start new episodes everywhere; return the observation groups, float32 [num_envs, width] each."""

  def step(self, action: Tensor) -> TensorDict:
    """Step with actions [num_envs, num_actions]; return entries for each environment.

    Continuous actions are float32, clipped to [-1, 1]; choices are int64, the number of each one.

    obs: after the reset of finished environments, the input to the next action.
    final_obs: before the reset; the same as obs where nothing ended.
    reward: float32, the raw weighted sum. reward_terms: its parts by name.
    terminated: bool, the task ended. truncated: bool, the time limit ended it and nothing else; an
      environment is truncated at most once in any least_between_truncations steps.
    valid: bool, False where the transition was not finite: it has no weight, and its environment was reset.
    metrics: quantities to log, by name (may be empty).
    success: bool, the episode ended with this step and had reached its aim (only where a task has one).
    """

  def counters(self) -> dict[str, Tensor]:
    """Return cumulative counts since the start, by name, as scalars on the device."""

  def diverged(self) -> TensorDict:
    """Return the last states of environments that diverged since the last call, for a file.

    [n] each: env, its index on this rank; states by name and reward [n, length, ...], the last `steps` of
    them from its last episode; varied, by name: what of the model the environment has of its own.
    """

  def state_dict(self) -> dict[str, Any]:
    """Return all that the future depends on."""

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Continue from a saved state."""
