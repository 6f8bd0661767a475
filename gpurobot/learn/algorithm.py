"""The protocol of an algorithm: what a training run, its log and its checkpoints need of one."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from gpurobot.device.clock import Clock
from gpurobot.device.distributed import World
from gpurobot.device.executor import Executor
from gpurobot.device.graph import WARM_UPS
from gpurobot.device.transfer import to_cpu
from gpurobot.learn.env import VecEnv


class Algorithm(Protocol):
  """One rank's share of a training: `collect` and `update` in turn are an iteration."""

  env: VecEnv
  world: World
  clock: Clock  # of the parts of an iteration
  executor: Executor
  iteration: int  # iterations so far

  @property
  def steps(self) -> int:
    """The environment steps so far, over all ranks."""

  def collect(self) -> None:
    """Gather samples with the present policy."""

  def update(self) -> None:
    """Learn from samples; every rank calls."""

  def describe(self) -> str:
    """Say in one line what is trained, and how."""

  def report(self) -> dict[str, Tensor]:
    """Return the statistics since the last report by name, scalars on the device; every rank calls."""

  def policy_dict(self) -> dict[str, Any]:
    """Return the part of `state_dict` with which a policy acts or a training begins; a rank has it alone."""

  def load_policy(self, state: Mapping[str, Any]) -> None:
    """Begin with the policy of a `policy_dict` or `state_dict`."""

  def state_dict(self) -> dict[str, Any]:
    """Return all that the future of the training depends on, every rank's part in it; every rank calls."""

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue a training with identical numbers; raise ValueError where it had another number of ranks."""


def warm_up(algorithm: Algorithm) -> None:
  """Compile and record what an iteration is made of, then go back to where it was; every rank calls.

  A training's time then holds none of that. Where no rank compiles or records, it does nothing.
  """
  if not any(algorithm.world.gather(algorithm.executor.prepares)):
    return
  before = to_cpu(algorithm.state_dict())
  for _ in range(WARM_UPS + 1):
    algorithm.collect()
    algorithm.update()
  algorithm.load_state_dict(before)
  algorithm.report()  # begins new sums
