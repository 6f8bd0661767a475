"""Protocol of a learning algorithm, as the training run, its log and its checkpoints use it."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from gpurobot.device.clock import Clock
from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.device.graph import WARM_UPS
from gpurobot.device.transfer import to_cpu
from gpurobot.learn.collector import Collector
from gpurobot.learn.env import VecEnv, images_of
from gpurobot.learn.replay_buffer import Replay
from gpurobot.settings.algorithms import AlgorithmConfig, OffPolicyConfig, PPOConfig, Recurrence

LOG = logging.getLogger(__name__)


class Algorithm(Protocol):
  """One rank's part of an algorithm; a `collect` and an `update` make an iteration."""

  env: VecEnv
  device: torch.device  # of what learns; the environments may have another
  world: World
  collector: Collector  # steps the environments; its `obs` are the present observations
  clock: Clock  # timer of the parts of an iteration
  executor: Executor
  iteration: int  # number of finished iterations

  @property
  def buffer(self) -> Replay | None:
    """Replay buffer, if there is one; its rows belong to a checkpoint beside the `state_dict`."""

  @property
  def first_update(self) -> int:
    """Number of iterations before the first that learns."""

  @property
  def steps(self) -> int:
    """Number of environment steps so far, over all ranks."""

  def collect(self) -> None:
    """Collect samples with the current policy."""

  def update(self) -> None:
    """Learn from the samples; every rank calls."""

  def describe(self) -> str:
    """Return one line about the environments, the network and the hyperparameters."""

  def report(self) -> dict[str, Tensor]:
    """Return the statistics since the last report by name, scalars on the device; every rank calls."""

  def policy_dict(self) -> dict[str, Any]:
    """Return the part of `state_dict` that a policy needs to act; it needs no communication."""

  def load_policy(self, state: Mapping[str, Any]) -> None:
    """Load the policy of a `policy_dict` or `state_dict`."""

  def state_dict(self) -> dict[str, Any]:
    """Return the complete training state of all ranks but the rows of `buffer`; every rank calls."""

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue training with identical numbers; raise ValueError if the number of ranks differs."""


def warm_up(algorithm: Algorithm) -> None:
  """Compile and capture the pieces of an iteration, then restore the state; every rank calls.

  The training time then includes none of that. If no rank compiles or captures, it does nothing.
  """
  if not any(algorithm.world.gather(algorithm.executor.prepares)):
    return
  LOG.info("compiling an iteration: about a minute")
  before, buffer = to_cpu(algorithm.state_dict()), algorithm.buffer
  rows = to_cpu(buffer.memory) if buffer else {}
  for _ in range(algorithm.first_update + WARM_UPS + 1):
    algorithm.collect()
    algorithm.update()
  algorithm.load_state_dict(before)
  if buffer:
    buffer.load_rows(0, rows)


def counted(number: int, noun: str, ending: str = "s") -> str:
  """Return a number with its noun, in the plural unless the number is 1."""
  return f"{number} {noun}{ending if number != 1 else ''}"


def layer_words(settings: AlgorithmConfig, inputs: int, hidden: list[int], *outputs: int) -> str:
  """Return the widths of a network's layers and their activation, or the name of the user's own layers."""
  between, after = ([settings.network], "") if settings.network else (hidden, f" {settings.activation}")
  return "-".join(map(str, (inputs, *between, *outputs))) + after


def network_words(ppo: PPOConfig, inputs: int, env: VecEnv) -> str:
  """Return the memory of a network with this many inputs, if it has one, and the layers of its policy."""
  memory = "" if ppo.recurrent is Recurrence.none else f"{ppo.recurrent} {ppo.recurrent_units}, "
  return memory + layer_words(ppo, inputs, ppo.hidden, sum(env.choices) or env.num_actions)


def epoch_words(ppo: PPOConfig, num_envs: int) -> str:
  """Return a description of an iteration's samples; num_envs: over all ranks."""
  minibatch = num_envs * ppo.horizon // ppo.minibatches
  minibatches = counted(ppo.minibatches, "minibatch", "es")
  return f"horizon {ppo.horizon}, {counted(ppo.epochs, 'epoch')} of {minibatches} of {minibatch} samples"


# Samples of a rank's gradient step up to which it is replayed. With more of them Python takes little time,
# and while a step is recorded all of its results are kept, some 6 kB for a sample and 450 hidden units.
LARGEST = 32768


def replayed(settings: PPOConfig | OffPolicyConfig, env: VecEnv, count: int) -> bool:
  """Return whether gradient steps on `count` samples are replayed on a CPU.

  Code of the user's own runs in each step: it may do more than torch's operations.
  """
  own_code = settings.loss or settings.network
  return count <= LARGEST and not own_code and not images_of(env)
