"""Base of the learning algorithms, as the training run, its log and its checkpoints use it."""

import abc
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gpurobot.device import process
from gpurobot.device.arithmetic import set_arithmetic
from gpurobot.device.clock import Clock
from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.device.graph import WARM_UPS
from gpurobot.device.transfer import to_cpu
from gpurobot.learn.agent import Agent
from gpurobot.learn.collector import Collector
from gpurobot.learn.env import VecEnv, images_of
from gpurobot.learn.replay_buffer import Replay
from gpurobot.learn.saved_state import Parts, check_saved, load_state, state_of
from gpurobot.learn.statistics import Means
from gpurobot.settings.algorithms import AlgorithmConfig, OffPolicyConfig, PPOConfig, Recurrence
from gpurobot.settings.config import TrainConfig

LOG = logging.getLogger(__name__)


class Algorithm(abc.ABC):
  """One rank's part of an algorithm; a `collect` and an `update` make an iteration.

  A subclass builds `agent`, `collector` and `clock`, and names what a checkpoint keeps of its own. All
  persistent tensors are written in place, and the pieces between two collectives take and return nothing: on
  CUDA each is a graph.
  """

  agent: Agent[Any]
  collector: Collector  # steps the environments; its `obs` are the present observations
  clock: Clock  # timer of the parts of an iteration
  means: Sequence[Means] = ()  # further means for the log

  def __init__(self, env: VecEnv, config: TrainConfig, world: World, horizon: int) -> None:
    """Seed torch's generator, the same on every rank; horizon: steps of an environment in an iteration."""
    process.keep_memory()
    set_arithmetic(config.tf32)
    torch.manual_seed(config.seed)
    self.env, self.world, self.num_envs, self.horizon = env, world, config.num_envs, horizon
    # The device of what learns; the environments may have another.
    self.device = world.device(config.device) if config.sim_device else env.device
    self.executor = Executor(config, self.device, world.gather)
    self.iteration = 0  # number of finished iterations

  @abc.abstractmethod
  def collect(self) -> None:
    """Collect samples with the current policy; moments and weights do not change."""

  @abc.abstractmethod
  def update(self) -> None:
    """Learn from the samples, then add 1 to `iteration`; every rank calls."""

  @property
  def buffer(self) -> Replay | None:
    """Replay buffer, if checkpoints keep it; its rows belong to a checkpoint beside the `state_dict`."""
    return None

  @property
  def first_update(self) -> int:
    """Number of iterations before the first that learns."""
    return 0

  @property
  def policy_parts(self) -> Parts:
    """What a checkpoint keeps of a policy beside the `agent`, by name."""
    return {}

  @property
  def parts(self) -> Parts:
    """What a checkpoint keeps of the training beside that, by name; the same on every rank."""
    return {}

  def rank_dict(self) -> dict[str, Any]:
    """Return this rank's part of the state beside the environments'."""
    return {}

  @property
  def steps(self) -> int:
    """Number of environment steps so far, over all ranks."""
    return self.iteration * self.num_envs * self.horizon

  def describe(self) -> str:
    """Return one line about the environments, the network and the hyperparameters."""
    ranks = counted(self.world.size, f"{self.device.type} rank")
    cores = f" with {counted(torch.get_num_threads(), 'thread')}" if self.device.type == "cpu" else ""
    return f"{counted(self.num_envs, 'environment')} on {ranks}{cores}"

  def report(self) -> dict[str, Tensor]:
    """Return the statistics since the last report by name, scalars on the device; every rank calls."""
    report = self.collector.report(self.world, *self.means)
    return {name: value.to(self.device) for name, value in report.items()}

  def policy_dict(self) -> dict[str, Any]:
    """Return the part of `state_dict` that a policy needs to act; it needs no communication."""
    return self.agent.state_dict() | state_of(self.policy_parts)

  def load_policy(self, state: Mapping[str, Any]) -> None:
    """Load the policy of a `policy_dict` or `state_dict`."""
    self.agent.check_images(state)
    check_saved(state, self.policy_dict())
    self.agent.load_state_dict(state)
    load_state(self.policy_parts, state)

  def state_dict(self) -> dict[str, Any]:
    """Return the complete training state of all ranks but the rows of `buffer`; every rank calls."""
    start = self.collector.start()
    own = start["environments"] | self.rank_dict() | self.collector.statistics.state_dict()
    return self.policy_dict() | {
      "iteration": self.iteration,
      **state_of(self.parts),
      "random": start["random"],
      "ranks": self.world.gather(to_cpu(own)),  # each has its own device
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue training with identical numbers; raise ValueError if the number of ranks differs."""
    if len(state["ranks"]) != self.world.size:
      raise ValueError(f"it was written by {counted(len(state['ranks']), 'rank')}, not {self.world.size}")
    own = state["ranks"][self.world.rank]
    check_saved(own, self.collector.state_dict() | self.rank_dict(), finite=False, name="environments")
    check_saved(state, {"iteration": self.iteration, **state_of(self.parts)})
    self.load_policy(state)
    self.iteration = state["iteration"]
    load_state(self.parts, state)
    self.collector.random.load_state_dict(state["random"])
    self.collector.load_state_dict(own)
    self.collector.statistics.load_state_dict(own)


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
