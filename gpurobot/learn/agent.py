"""Agent: the actor-critic network with its observation normalisation."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from gpurobot.algorithm_config import PPOConfig, Precision
from gpurobot.learn.distribution import Distribution
from gpurobot.learn.env import VecEnv
from gpurobot.learn.network import ActorCritic
from gpurobot.learn.normalize import ObservationNormalizer
from gpurobot.learn.saved_state import check_saved


def resolve(precision: Precision, device: torch.device) -> Precision:
  """Return the precision of the hidden layers on a device; auto: bf16 if the hardware multiplies in it."""
  if precision is not Precision.auto:
    return precision
  if device.type == "cuda":
    return Precision.bf16 if torch.cuda.get_device_capability(device)[0] >= 8 else Precision.float32
  return Precision.bf16 if torch.cpu.get_capabilities().get("amx_bf16", False) else Precision.float32


class Spaces(NamedTuple):
  """Observation and action spaces of an agent; the fields are those of `env.VecEnv`."""

  obs_dims: dict[str, int]
  num_actions: int
  choices: tuple[int, ...]

  @classmethod
  def of(cls, env: VecEnv) -> Self:
    """Return the spaces of environments."""
    return cls(dict(env.obs_dims), env.num_actions, tuple(env.choices))

  @classmethod
  def saved(cls, state: Mapping[str, Any]) -> Self:
    """Return the spaces of the agent whose `state_dict` this is."""
    return cls(dict(state["obs_dims"]), state["num_actions"], tuple(state["choices"]))


class Agent:
  """The network and the observation normaliser of one policy, in training, evaluation and export."""

  def __init__(self, spaces: Spaces, ppo: PPOConfig, device: torch.device) -> None:
    """Build the network with new weights on the device."""
    self.spaces, self.device = spaces, device
    self.precision = resolve(ppo.precision, device)
    self.network = ActorCritic(*spaces, ppo, self.precision).to(device)
    dtypes = (self.network.dtype, self.network.input_dtype)
    self.observations = ObservationNormalizer(spaces.obs_dims, device, dtypes, ppo.normalize_obs)

  def start(self, num_envs: int) -> Tensor:
    """Return the network's state [num_envs, state_width] before the first step of an episode."""
    return torch.zeros(num_envs, self.network.state_width, dtype=self.network.dtype, device=self.device)

  def act(self, obs: Mapping[str, Tensor], state: Tensor, restart: Tensor) -> tuple[Distribution, Tensor]:
    """Return the action distribution [1, n] for raw observations [n, width], and the actor's new state.

    state [n, state_width]: before the step. restart [n] bool: an episode starts with this step.
    """
    return self.network.act(self._batch(obs), state, restart.unsqueeze(0))

  def evaluate(self, obs: Mapping[str, Tensor], state: Tensor, restart: Tensor) -> Tensor:
    """Return the values [n] of raw observations, as the critic's head outputs them; arguments as in `act`."""
    return self.network.evaluate(self._batch(obs), state, restart.unsqueeze(0)).squeeze(0)

  def _batch(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the groups as the network's input: normalised, as one step [1, n, width]."""
    return {group: x.unsqueeze(0) for group, x in self.observations(obs).items()}

  def state_dict(self) -> dict[str, Any]:
    """Return weights, moments and spaces."""
    return {
      "network": self.network.state_dict(),
      "obs_dims": dict(self.spaces.obs_dims),
      "num_actions": self.spaces.num_actions,
      "choices": list(self.spaces.choices),
      "observations": self.observations.state_dict(),
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Load saved weights and moments.

    Raises ValueError or torch's RuntimeError if they are of another network, or not finite.
    """
    own = self.state_dict()
    check_saved({key: state[key] for key in own}, own)
    self.network.load_state_dict(state["network"])
    self.observations.load_state_dict(state["observations"])
