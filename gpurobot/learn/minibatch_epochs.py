"""Epochs of gradient steps on the minibatches of a rollout, as PPO and distillation take them."""

from collections.abc import Callable

import torch

from gpurobot.config import TrainConfig, block
from gpurobot.device.clock import Clock
from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.learn.optimizer import Optimizer
from gpurobot.learn.random import Random
from gpurobot.learn.rollout import MinibatchSampler, Rollout


def make_sampler(rollout: Rollout, config: TrainConfig, world: World) -> MinibatchSampler:
  """Return the sampler of a rollout's minibatches, with random numbers of its own."""
  size, device = block(config.ppo), rollout.last_restart.device
  blocks = len(rollout.last_restart) // size
  dealer = Random(config.seed, blocks, world.rank * blocks, device)
  return MinibatchSampler(rollout.sequences, config.ppo.minibatches, size, dealer)


class MinibatchEpochs:
  """Gradient steps, one for each minibatch of an epoch, for any number of ranks."""

  def __init__(
    self,
    sampler: MinibatchSampler,
    optimizer: Optimizer,
    executor: Executor,
    clock: Clock,
    *,
    tape: bool,
  ) -> None:
    """Keep what a step needs. tape: whether it is of torch's operations alone, see `Tape`."""
    self.sampler, self.optimizer, self.executor, self.clock = sampler, optimizer, executor, clock
    self._tape = tape
    self.rows = torch.zeros_like(sampler.minibatches[0])  # of the present minibatch [n]

  def draw(self) -> range:
    """Draw the minibatches of an epoch; return their indices, which `step` takes in this order."""
    self.executor.run(self.sampler.draw)
    return range(len(self.sampler.minibatches))

  def step(self, index: int, differentiate: Callable[[], None], descend: Callable[[], None]) -> None:
    """Take the gradient step of a minibatch.

    differentiate: computes the gradient on this rank's `rows`. descend: steps with that of all ranks.
    """
    self.clock.begin("update/minibatch")
    self.rows.copy_(self.sampler.minibatches[index])
    self.executor.run_parts(differentiate, tape=self._tape)
    self.clock.begin("update/all-reduce")
    self.optimizer.reduce()
    self.clock.begin("update/optimizer")
    self.executor.run(descend, tape=self._tape)
