"""Agent: the network of a policy with its observation normalisation."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, Self, TypeVar

import torch
from torch import Tensor

from gpurobot.learn.distribution import Distribution
from gpurobot.learn.env import Image, VecEnv, images_of
from gpurobot.learn.estimator import estimated_columns
from gpurobot.learn.identity import names_of
from gpurobot.learn.network import Actor, ActorCritic
from gpurobot.learn.normalize import ObservationNormalizer
from gpurobot.learn.saved_state import check_saved
from gpurobot.settings.algorithms import AlgorithmConfig, PPOConfig, Precision, SACConfig, TD3Config


def resolve(precision: Precision, device: torch.device) -> Precision:
  """Return the precision of the hidden layers on a device; auto: bf16 if the hardware is fast in it."""
  if precision is not Precision.auto:
    return precision
  if device.type == "cuda":
    return Precision.bf16 if torch.cuda.get_device_capability(device)[0] >= 8 else Precision.float32
  able = torch.cpu.get_capabilities()
  fast = able.get("amx_bf16", False) or _fast_vectors(able)
  return Precision.bf16 if fast else Precision.float32


def _fast_vectors(able: Mapping[str, Any]) -> bool:
  """Return whether a CPU of these instructions is faster in bf16 by AVX-512.

  AMD's Zen 5 multiplies 470 Gflop/s of bf16 on one core, and 107 of float32: PPO learns Ant at 1.8 times the
  speed. On a Zen 4 a gradient step of SAC takes 3/4 of the time of float32 at a batch of 4,096, and NatureCNN
  half of it, forward and backward on 512 images of 32 x 32. Intel's processors have AVX512_FP16 too, and
  multiply half as many bf16 numbers as float32 ones: a gradient step of SAC at a batch of 256 takes 1.4 times
  as long, NatureCNN 1.2 times.
  """
  return bool(able.get("avx512_bf16", False)) and not able.get("avx512_fp16", False)


class Spaces(NamedTuple):
  """Observation and action spaces of an agent, with the fields of `env.VecEnv`."""

  obs_dims: dict[str, int]
  num_actions: int
  choices: tuple[int, ...]
  images: dict[str, Image] = {}  # noqa: RUF012 (nothing writes to it)
  names: Mapping[str, Any] = {}

  @classmethod
  def of(cls, env: VecEnv) -> Self:
    """Return the spaces of environments."""
    return cls(dict(env.obs_dims), env.num_actions, tuple(env.choices), images_of(env), names_of(env))

  @classmethod
  def saved(cls, state: Mapping[str, Any]) -> Self:
    """Return the spaces of the agent with this `state_dict`."""
    choices, names = tuple(state["choices"]), state.get("names", {})
    check_saved(names, {key: [""] for key in names} | {"model": {}}, name="names")
    return cls(dict(state["obs_dims"]), state["num_actions"], choices, saved_images(state), names)


def saved_images(state: Mapping[str, Any]) -> dict[str, Image]:
  """Return the images, by name, of the agent with this `state_dict`."""
  return {
    name: Image(tuple(shape), kind, low, high, tuple(groups))
    for name, (shape, kind, low, high, groups) in state.get("images", {}).items()
  }


def _words(images: Mapping[str, Image]) -> str:
  """Return the names, sizes and types of images."""
  return ", ".join(f"{name} {image}" for name, image in sorted(images.items())) or "no images"


N = TypeVar("N", bound=Actor | ActorCritic)


class Agent(Generic[N]):
  """The network and the observation normaliser of one policy, in training, evaluation and export."""

  def __init__(self, spaces: Spaces, network: N, normalize_obs: bool, device: torch.device) -> None:
    """Take a network with new weights to the device."""
    self.spaces, self.device = spaces, device
    self.network = network
    network.to(device)
    dtypes = (network.dtype, network.input_dtype)
    self.observations = ObservationNormalizer(
      spaces.obs_dims, device, dtypes, normalize_obs, tuple(spaces.images)
    )

  def start(self, num_envs: int) -> Tensor:
    """Return the network's state [num_envs, state_width] before the first step of an episode."""
    return torch.zeros(num_envs, self.network.state_width, dtype=self.network.dtype, device=self.device)

  def act(self, obs: Mapping[str, Tensor], state: Tensor, restart: Tensor) -> tuple[Distribution, Tensor]:
    """Return the action distribution [1, n] for raw groups [n, width] and images, and the actor's new state.

    state [n, state_width]: before the step. restart [n] bool: an episode starts with this step.
    """
    return self.network.act(self.batch(obs), state, restart.unsqueeze(0))

  def batch(self, obs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the network's input: normalised groups [1, n, width] and images, as one step."""
    return {group: x.unsqueeze(0) for group, x in self.observations(obs).items()}

  def follow(self, other: "Agent[N]") -> None:
    """Take over the weights and moments of another agent with the same network, on any device."""
    self.network.load_state_dict(other.network.state_dict())
    self.observations.load_state_dict(other.observations.state_dict())

  def state_dict(self) -> dict[str, Any]:
    """Return weights, moments and spaces."""
    images = {
      name: [list(image.shape), *image[1:-1], list(image.groups)]
      for name, image in self.spaces.images.items()
    }
    return {
      "network": self.network.state_dict(),
      "obs_dims": dict(self.spaces.obs_dims),
      "num_actions": self.spaces.num_actions,
      "choices": list(self.spaces.choices),
      "observations": self.observations.state_dict(),
      **({"images": images} if images else {}),
      **({"names": self.spaces.names} if self.spaces.names else {}),
    }

  def check_images(self, state: Mapping[str, Any]) -> None:
    """Raise ValueError if the agent with this `state_dict` sees other images."""
    seen, shown = _words(saved_images(state)), _words(self.spaces.images)
    if seen != shown:
      raise ValueError(f"its policy sees {seen}, and this one {shown}")

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Load saved weights and moments.

    Raises ValueError or torch's RuntimeError if they are of another network, or not finite.
    """
    self.check_images(state)
    own = {key: value for key, value in self.state_dict().items() if key not in ("images", "names")}
    check_saved({key: state[key] for key in own}, own)
    self.network.load_state_dict(state["network"])
    self.observations.load_state_dict(state["observations"])


def actor_critic(spaces: Spaces, ppo: PPOConfig, device: torch.device) -> Agent[ActorCritic]:
  """Return a new agent of PPO; raise ConfigError if it cannot estimate what it should."""
  dims, num_actions, choices, images, names = spaces
  ppo = dataclasses.replace(ppo, precision=resolve(ppo.precision, device))
  estimated = estimated_columns(names, ppo)
  network = ActorCritic(dims, num_actions, choices, ppo, images, estimated)
  return Agent(spaces, network, ppo.normalize_obs, device)


def actor(spaces: Spaces, settings: SACConfig | TD3Config, device: torch.device) -> Agent[Actor]:
  """Return a new agent of an off-policy algorithm."""
  precision = resolve(settings.precision, device)
  network = Actor(spaces.obs_dims, spaces.num_actions, settings, precision, spaces.images)
  return Agent(spaces, network, settings.normalize_obs, device)


def restored(
  saved: Mapping[str, Any], settings: AlgorithmConfig, device: torch.device
) -> Agent[ActorCritic] | Agent[Actor]:
  """Return the agent of a checkpoint's part "learner"; an off-policy one acts by the average of its policy.

  Raises ValueError or torch's RuntimeError if the settings are of another network.
  """
  agent: Agent[ActorCritic] | Agent[Actor]
  if isinstance(settings, PPOConfig):
    agent = actor_critic(Spaces.saved(saved), settings, device)
  else:
    agent = actor(Spaces.saved(saved), settings, device)
  agent.load_state_dict({**saved, "network": saved.get("average", saved["network"])})
  return agent
