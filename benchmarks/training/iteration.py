"""Time breakdown of a training iteration: python -m benchmarks.training.iteration [key=value ...].

Without a task it is Ant as Isaac Gym trains it (`cases.ISAAC_ANT`).

The program prints `name: value` lines. They give the share of each part: physics, task, network in the
rollout, policy around it (normalisation, sampling), storage and statistics, update. The overhead of the
rollout, which is everything except physics, network and update, has a goal. On CUDA, where a rollout is one
graph and one part, the program prints kernels and their shares instead.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

import tasks
from benchmarks import cases
from benchmarks.report import line, start
from benchmarks.training import fused
from gpurobot.device.clock import shares
from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.shell import cli

WARM_UP, MEASURED = 5, 20  # iterations
SHOWN = 20  # number of kernels to print


def iterate(learner: PPO, count: int) -> None:
  """Train for `count` iterations."""
  for _ in range(count):
    learner.collect()
    learner.update()


def time_network(learner: PPO) -> None:
  """Make the clock time the network of the rollout separately from the policy around it."""
  clock, compiled = learner.clock, learner.executor.compiled

  def network(*inputs: Any) -> Any:
    clock.begin("network")
    output = compiled(learner.network)(*inputs)
    clock.begin("policy")
    return output

  def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    return network if function is learner.network else compiled(function)

  vars(learner.executor)["compiled"] = timed


def largest(parts: Mapping[str, float]) -> list[tuple[str, float]]:
  """Return the parts and their sizes, the largest first."""
  return sorted(parts.items(), key=lambda item: -item[1])


def events(seen: profile, kind: DeviceType) -> list[FunctionEvent]:
  """Return the events of a profile on a kind of device."""
  # Each event has an object of its own for its kind: compare by equality, not identity.
  return [event for event in seen.events() or [] if event.device_type == kind]


def print_kernels(learner: PPO, seconds: float) -> None:
  """Print the number of kernels in an iteration of `seconds`, and their shares of the time."""
  with profile(activities=[ProfilerActivity.CUDA]) as seen:
    iterate(learner, 1)
    torch.cuda.synchronize()
  busy = defaultdict[str, float](float)
  kernels = events(seen, DeviceType.CUDA)
  for event in kernels:
    busy[event.name] += event.time_range.elapsed_us() / 1e6
  line("iteration.kernels", len(kernels))
  line("iteration.busy_share", sum(busy.values()) / seconds)
  for name, spent in largest(busy)[:SHOWN]:
    line(f"iteration.kernel.{name[:60]}", spent / seconds)


def run(words: Sequence[str] = ()) -> None:
  """Train for some iterations and print the time breakdown."""
  world = World()
  named = any(word.startswith("task=") for word in words)
  config, task = cli.parse([*(() if named else cases.ISAAC_ANT), *words], tasks.load, world)
  learner = fused.make_learner(config, task, world)
  time_network(learner)
  iterate(learner, WARM_UP)
  before = learner.clock.seconds()
  iterate(learner, MEASURED)
  after = learner.clock.seconds()
  total = sum(after.values()) - sum(before.values())
  found = defaultdict[str, float](float)
  for name, share in shares(before, after).items():
    found[name.split("/")[0]] += share

  samples = MEASURED * config.num_envs * config.ppo.horizon
  line("iteration.steps_per_second", samples / total)
  for part, share in largest(found):
    if share:  # parts inside a CUDA graph have no time of their own
      line(f"iteration.{part}_share", share)
  if learner.device.type == "cuda":
    line("iteration.memory_gb", torch.cuda.max_memory_reserved() / 1e9)
    print_kernels(learner, total / MEASURED)
    return
  line("iteration.overhead_share", 1 - sum(found[part] for part in ("physics", "network", "update")))


if __name__ == "__main__":
  start(run)
