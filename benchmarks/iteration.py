"""Where an iteration of training goes: python -m benchmarks.iteration [key=value ...], on Ant if not told.

Prints `name: value` lines: the share of physics, of the task, of the network in the rollout, of the
policy around it (normalisation, sampling), of storage and statistics, and of the update; the rollout's
overhead, which is all outside of physics, network and update, beside its goal; and the rate of the network's
arithmetic beside that of a large float32 matrix product here.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

import torch

import tasks
from benchmarks.report import line
from benchmarks.update import floor
from gpurobot import cli
from gpurobot.clock import shares
from gpurobot.distributed import World
from gpurobot.ppo import Learner
from gpurobot.random import Random

WARM_UP, MEASURED = 5, 20  # iterations
GOAL = 0.15  # of an iteration for the rollout's overhead, at 4,096 environments
SIDE = 4096  # of the matrices whose product shows what this machine can do


def float32_rate() -> float:
  """Return the floating-point operations per second of a large float32 matrix product."""
  matrix = torch.randn(SIDE, SIDE)
  matrix @ matrix
  start = time.perf_counter()
  matrix @ matrix
  return 2 * SIDE**3 / (time.perf_counter() - start)


def run(words: Sequence[str] = ()) -> None:
  """Train for some iterations, the clock told of the network as well."""
  world = World()
  config, task = cli.parse(["task=ant", *words], tasks.load, world)
  device = world.device(config.device)
  world.use(device, config.threads)
  env = task.Task(config.env, config.num_envs, device, random=Random(config.seed, config.num_envs))
  learner = Learner(env, config, world)
  clock = learner.clock
  think = learner._think

  def network(*inputs: Any) -> Any:
    clock.begin("network")
    output = think(*inputs)
    clock.begin("policy")
    return output

  learner._think = network
  before: dict[str, float] = {}
  for iteration in range(WARM_UP + MEASURED):
    if iteration == WARM_UP:
      before = clock.seconds()
    learner.collect()
    learner.update()
  after = clock.seconds()
  total = sum(after.values()) - sum(before.values())
  found: dict[str, float] = {}
  for name, share in shares(before, after).items():
    part = name.split("/")[0]
    found[part] = found.get(part, 0.0) + share

  samples = MEASURED * config.num_envs * config.ppo.horizon
  line("iteration.steps_per_second", samples / total)
  for part, share in sorted(found.items(), key=lambda item: -item[1]):
    line(f"iteration.{part}_share", share)
  line("iteration.overhead_share", 1 - sum(found[part] for part in ("physics", "network", "update")))
  line("iteration.overhead_goal", GOAL)
  arithmetic = floor(config.ppo, env.obs_dims["policy"], env.num_actions) * samples
  seconds = total * (found["network"] + found["update"])
  line("iteration.network_gflop_per_second", arithmetic / seconds / 1e9)
  line("iteration.float32_gflop_per_second", float32_rate() / 1e9)


if __name__ == "__main__":
  run(sys.argv[1:])
