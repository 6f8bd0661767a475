"""Model of training on many cores: python -m benchmarks.cores [cores=[16,64]] [bandwidth=200] [task=ant].

A rank of one thread trains on each core. The program counts the bytes that an iteration of a rank moves,
times it alone and beside a program that keeps the memory busy from another core, and times the sum of a
gradient over two ranks. It prints `name: value` lines: these numbers, and the speed that they predict for
more cores. A tensor that an operation reads or writes counts as moved from or to memory, unless it is so
small that it may have stayed in the core's cache. Times are of the processor: they include waiting for
memory, and other programs do not change them.
"""

import contextlib
import dataclasses
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import tasks
from benchmarks.iteration import iterate
from benchmarks.report import line, start
from gpurobot.config import assign, defaults, leaves, option, pairs
from gpurobot.device import distributed
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from tasks.base import Task

WARM_UP, MEASURED, TURNS = 5, 5, 5  # iterations, and in turns alone and beside the hog
REDUCTIONS = 200
PICKED = ("index", "index_select", "gather")  # operations that read as much as they write
HOG = """
import torch
torch.set_num_threads(1)
source = torch.ones(2**28)  # 1 GiB, more than any cache holds
target = torch.empty_like(source)
while True:
  target.copy_(source)
"""


@dataclasses.dataclass
class Settings:
  """Settings of a prediction."""

  task: str = option("ant", "task that is trained")
  num_envs: int = option(2048, "environments of a rank", low=1)
  cache: float = option(1.0, "size up to which a tensor stays in a core's cache", "MB", low=0)
  cores: list[int] = option([16, 64], "numbers of cores for which the speed is predicted", low=1)  # noqa: RUF009 (a field)
  bandwidth: float = option(200.0, "bandwidth of the memory that these cores share", "GB/s", low=1)


class Reduction(NamedTuple):
  """Cost of a sum over ranks that stand in a ring."""

  latency: float  # of a message [s]
  rate: float  # of a link [bytes/s]

  def seconds(self, ranks: int, size: float) -> float:
    """Return the time of a sum of `size` bytes: 2 (ranks - 1) messages, each of a share of them."""
    return 2 * (ranks - 1) * (self.latency + size / ranks / self.rate)


class Traffic(TorchDispatchMode):
  """Counter of the bytes that torch's operations read and write; views move nothing."""

  def __init__(self, cache: float) -> None:
    """Start at zero; tensors of up to `cache` bytes do not count."""
    super().__init__()
    self.moved, self._cache = 0, cache

  def __torch_dispatch__(
    self, func: Any, types: Sequence[type], args: tuple = (), kwargs: dict[str, Any] | None = None
  ) -> Any:
    """Run an operation and add its bytes."""
    result = func(*args, **(kwargs or {}))
    written = [value for value in tree_leaves(result) if isinstance(value, Tensor)]
    if not any(one.alias_info and not one.alias_info.is_write for one in func._schema.returns):
      given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
      read = written if func.overloadpacket.__name__ in PICKED else given
      sizes = [tensor.nbytes for tensor in (*read, *written)]
      self.moved += sum(size for size in sizes if size > self._cache)
    return result


def make(settings: Settings) -> tuple[Task, PPO]:
  """Return the environments and the learner of a rank of one thread."""
  module, cpu = tasks.load(settings.task), torch.device("cpu")
  config = assign(defaults(module), {"num_envs": settings.num_envs})
  env = module.Task(config.env, config.num_envs, cpu, random=Random(config.seed, config.num_envs))
  return env, PPO(env, config, distributed.World())


def moved(env: Task, learner: PPO, cache: float) -> int:
  """Return the bytes that an iteration moves: by torch's operations, and as states of the physics."""
  with Traffic(cache) as traffic:
    iterate(learner, 1)
  state = 2 * env.num_envs * env.sim.bytes_per_env  # read and written by each step
  return traffic.moved + learner.ppo.horizon * state * (state > cache)


@contextlib.contextmanager
def hog(core: int) -> Iterator[subprocess.Popen]:
  """Start a program that copies memory on a core, and stop it in the end."""
  with subprocess.Popen([sys.executable, "-c", HOG]) as process:
    os.sched_setaffinity(process.pid, {core})
    try:
      yield process
    finally:
      process.kill()


def timed(learner: PPO) -> float:
  """Return the processor time of an iteration [s]."""
  start = time.process_time()
  iterate(learner, MEASURED)
  return (time.process_time() - start) / MEASURED


def beside_a_hog(learner: PPO, core: int) -> tuple[float, float]:
  """Return the times of an iteration [s], alone and with memory kept busy from another core."""
  turns = []
  with hog(core) as process:
    for _ in range(TURNS):
      process.send_signal(signal.SIGSTOP)
      alone = timed(learner)
      process.send_signal(signal.SIGCONT)
      turns.append((alone, timed(learner)))
  alone, beside = (statistics.median(seconds) for seconds in zip(*turns, strict=True))
  return alone, beside


def reduce(size: int) -> None:
  """Be one of two ranks; the main one prints the durations of a sum of one number and of `size` [s]."""
  world = distributed.start()
  for numbers in (torch.zeros(1), torch.zeros(size)):
    taken = []
    for _ in range(REDUCTIONS):
      start = time.perf_counter()
      world.sum_(numbers)
      taken.append(time.perf_counter() - start)
    if world.main:
      print(statistics.median(taken), flush=True)
  world.close()


def reduction(size: int) -> Reduction:
  """Measure the sum of a gradient of `size` numbers over two ranks."""
  command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
  command += ["-m", "benchmarks.cores", "reduce", str(size)]
  done = subprocess.run(command, check=True, capture_output=True, text=True)
  one, whole = (float(word) for word in done.stdout.split())
  return Reduction(one / 2, 4 * size / max(whole - one, 1e-9))


def two_cores() -> tuple[int, int]:
  """Return two cores that this process may use."""
  usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
  if len(usable) < 2:
    sys.exit("error: two cores are needed, on Linux: one for the rank, and one that keeps the memory busy")
  return usable[0], usable[1]


def run(words: Sequence[str] = ()) -> None:
  """Measure one rank, then print what it predicts for the cores of the settings."""
  settings = assign(Settings(), pairs(list(words), leaves(Settings())))
  own, other = two_cores()
  os.sched_setaffinity(0, {own})
  torch.set_num_threads(1)
  env, learner = make(settings)
  iterate(learner, WARM_UP)
  alone, beside = beside_a_hog(learner, other)
  size = learner.optimizer.gradient.numel()
  found = {
    "steps": settings.num_envs * learner.ppo.horizon,
    "seconds": alone,
    "bytes": moved(env, learner, settings.cache * 1e6),
    "gradient": 4 * size,
    "sums": learner.ppo.epochs * learner.ppo.minibatches,
  }
  line("cores.worst_bytes_per_step", moved(env, learner, 0) / found["steps"])
  line("cores.bytes_per_step", found["bytes"] / found["steps"])
  line("cores.gigabytes_per_second", found["bytes"] / alone / 1e9)
  line("cores.steps_per_second", found["steps"] / alone)
  line("cores.beside_busy_memory", alone / beside)
  ring = reduction(size)
  line("cores.message_microseconds", ring.latency * 1e6)
  line("cores.reduction_gigabytes_per_second", ring.rate / 1e9)
  for cores in settings.cores:
    predict(cores, settings.bandwidth * 1e9, found, ring)


def predict(cores: int, bandwidth: float, rank: Mapping[str, float], ring: Reduction) -> None:
  """Print the speed of a number of cores with a shared memory [bytes/s] from what one rank does."""
  moving = cores * rank["bytes"] / bandwidth
  reducing = rank["sums"] * ring.seconds(cores, rank["gradient"])
  seconds = max(rank["seconds"], moving) + reducing
  line(f"cores.{cores}.steps_per_second", cores * rank["steps"] / seconds)
  line(f"cores.{cores}.share_of_linear", rank["seconds"] / seconds)
  line(f"cores.{cores}.bandwidth_needed", moving / rank["seconds"])
  line(f"cores.{cores}.reduction_share", reducing / seconds)


if __name__ == "__main__":
  if sys.argv[1:2] == ["reduce"]:
    reduce(int(sys.argv[2]))
  else:
    start(run)
