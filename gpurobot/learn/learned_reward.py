"""Learned reward: the reward of a network that is trained beside the policy, on its rollouts."""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.device.transfer import to_cpu
from gpurobot.learn.env import VecEnv
from gpurobot.learn.normalize import Moments
from gpurobot.learn.optimizer import Optimizer
from gpurobot.learn.random import Random
from gpurobot.learn.rollout import Rollout
from gpurobot.learn.saved_state import Parts, check_saved, load_state, state_of
from gpurobot.learn.statistics import LossMeans
from gpurobot.settings.config import TrainConfig

MAX_GRAD_NORM = 1.0


class Training(NamedTuple):
  """The training that a learned reward is part of."""

  env: VecEnv
  config: TrainConfig
  world: World
  executor: Executor
  rollout: Rollout


class LearnedReward(abc.ABC):
  """Reward of a network that is trained beside the policy.

  After a rollout is filled, `reward` is its reward for every sample; after the policy's update, `train` takes
  gradient steps on samples of the rollout. Moments are frozen in between, and merged over the ranks after.

  Each environment gives a gradient step equally many samples, drawn by random numbers of its own, so that any
  number of ranks draws the same. The pieces between two collectives take and return nothing.
  """

  name: ClassVar[str]
  sums: ClassVar[tuple[str, ...]]  # of a gradient step over samples; the first is the sum of the weights
  updates: int  # gradient steps of an iteration

  def __init__(self, training: Training, network: nn.Module, lr: float, width: int) -> None:
    """Take a network, with the moments of `width` quantities, to the device of the rollout."""
    config, self.world, self.executor = training.config, training.world, training.executor
    self.rollout = training.rollout
    reward = self.rollout.samples["reward"]
    (self.horizon, self.local_envs), self.device, self.dtype = reward.shape, reward.device, reward.dtype
    self.network = network.to(self.device, self.dtype)
    sums = len(self.sums)
    self.optimizer = Optimizer(self.network, sums, lr, MAX_GRAD_NORM, self.world)
    self.losses = LossMeans(self.sums, self.device)
    self.moments = Moments(width, self.device, self.dtype)
    self.random = Random(config.seed, self.local_envs, self.world.rank * self.local_envs, self.device)
    self._envs = torch.arange(self.local_envs, device=self.device)
    own = {"network": self.network, "optimizer": self.optimizer, "moments": self.moments}
    self._parts: Parts = own | {"random": self.random}

  @abc.abstractmethod
  def weight(self, steps: int) -> float:
    """Return the weight of the reward after `steps` environment steps."""

  @abc.abstractmethod
  def reward(self) -> Tensor:
    """Return the unweighted rewards [horizon, local_envs] of the rollout, finite where it is valid."""

  @abc.abstractmethod
  def draw(self) -> tuple[Tensor, ...]:
    """Return the samples of a gradient step: the arguments of `loss`, the last of them the weights."""

  @abc.abstractmethod
  def loss(self, *batch: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss of the samples of `draw`, summed by weight, and the `sums` [len(sums)]."""

  def train(self) -> None:
    """Take the gradient steps of an iteration, then merge the moments; every rank calls."""
    for _ in range(self.updates):
      self.executor.run_parts(self._differentiate)
      self.optimizer.reduce()
      self.executor.run(self._step_optimizer)
    self.world.sum_(self.moments.pending)
    self.executor.run(self.merge)

  def merge(self) -> None:
    """Merge the pending sums of all ranks into the moments."""
    self.moments.merge()

  def _differentiate(self) -> None:
    """Compute the gradient on this rank's samples."""
    self.random.advance()
    batch = self.executor.compiled(self.draw)()
    self.optimizer.clear()
    loss, sums = self.executor.compiled(self.loss)(*batch)
    loss.backward()
    self.optimizer.sums.copy_(sums)

  def _step_optimizer(self) -> None:
    """Take one optimiser step with the gradient of all ranks."""
    self.optimizer.step()
    self.losses.add(self.optimizer.sums, self.optimizer.norm)

  def pick(self, purpose: str, count: int, length: Tensor | int) -> Tensor:
    """Return random whole numbers [count, local_envs] from 0 to `length`, exclusive."""
    unit = self.random.uniform(purpose, (count,)).T.to(torch.float64)  # float32 may round to `length`
    return (unit * length).long()

  def at(self, rows: Tensor, index: Tensor) -> Tensor:
    """Return the rows [count * local_envs, ...] of [length, local_envs, ...] at index [count, local_envs]."""
    return rows[index, self._envs].flatten(0, 1)

  def report(self) -> dict[str, Tensor]:
    """Return the means of the gradient steps since the last report, scalars by name, over all ranks."""
    return {f"{self.name}/{name}": value for name, value in self.losses.report().items()}

  def memory(self) -> dict[str, Tensor]:
    """Return what this rank keeps from iteration to iteration and others do not have."""
    return {}

  def state_dict(self) -> dict[str, Any]:
    """Return the complete state of all ranks; every rank calls."""
    return state_of(self._parts) | {"ranks": self.world.gather(to_cpu(self.memory()))}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from a saved state of as many ranks."""
    own, memory = state["ranks"][self.world.rank], self.memory()
    check_saved(own, memory, name=self.name)
    check_saved(state, state_of(self._parts), name=self.name)
    load_state(self._parts, state)
    for name, tensor in memory.items():
      tensor.copy_(own[name])
