"""Fused operations of a step on a CPU beside torch's: python -m benchmarks.training.fused [key=value ...].

Two learners train in turns from the same seed. One of them has functions in C++ from the first steps on, as a
long run has them. The program prints `name: value` lines: medians of the time of a step and of an iteration,
and their ratios.
"""

import statistics
import time
from collections.abc import Sequence
from types import ModuleType

import tasks
from benchmarks.report import line, start
from gpurobot.device import tape
from gpurobot.device.distributed import World
from gpurobot.device.graph import WARM_UPS
from gpurobot.device.tape import Tape
from gpurobot.fusion.schedule import Fusion, fuse
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.settings.config import Switch, TrainConfig
from gpurobot.shell import cli

WARM_UP, TURNS = 2, 8  # iterations


class Compiled(Fusion):
  """A fusion by functions that this process compiles where no earlier one has."""

  def ready(self, *_: object) -> bool:
    """Return that there is nothing to wait for."""
    return True


def make_learner(config: TrainConfig, task: ModuleType, world: World) -> PPO:
  """Return PPO that fuses its operations after a few steps, unless the settings say otherwise."""
  tape.FUSE = WARM_UPS + 3
  device = world.device(config.device)
  world.use(device, config.threads)
  random = Random(config.seed, config.num_envs, 0, device)
  env = task.Task(config.env, config.num_envs, device, random=random)
  learner = PPO(env, config, world)
  taped = learner.collector.taped
  fuse(taped, env.num_envs)
  if isinstance(taped, Tape) and taped.fusion:
    taped.fusion = Compiled(env.num_envs) if config.compile is Switch.auto else None
  return learner


def build(words: Sequence[str]) -> None:
  """Compile the functions of a training, for the trainings of later processes."""
  world = World()
  make_learner(*cli.parse([*words], tasks.load, world), world).collect()


def iterate(learner: PPO) -> tuple[float, float]:
  """Train for an iteration; return the time of a step and of the iteration [s]."""
  begin = time.perf_counter()
  learner.collect()
  collected = time.perf_counter()
  learner.update()
  return (collected - begin) / learner.ppo.horizon, time.perf_counter() - begin


def run(words: Sequence[str] = ()) -> None:
  """Train both learners in turns; print the times and their ratios."""
  world = World()
  learners = {
    name: make_learner(*cli.parse([*words, *switch], tasks.load, world), world)
    for name, switch in (("torch", ["compile=off"]), ("fused", []))
  }
  for _ in range(WARM_UP):
    for learner in learners.values():
      iterate(learner)
  turns = [{name: iterate(learner) for name, learner in learners.items()} for _ in range(TURNS)]
  for i, part in enumerate(("step", "iteration")):
    for name in learners:
      line(f"fused.{part}_us.{name}", statistics.median(turn[name][i] for turn in turns) * 1e6)
    line(f"fused.{part}_ratio", statistics.median(turn["torch"][i] / turn["fused"][i] for turn in turns))


if __name__ == "__main__":
  start(run)
