"""Gain of collecting the next rollout while PPO learns from the last: python -m benchmarks training.overlap.

Each case trains with overlap=true and without, in turn, on all threads.
"""

import statistics
import time
from collections.abc import Callable

import torch

import tasks
from benchmarks.cases import OVERLAP, Overlap
from benchmarks.report import line
from gpurobot.device import threads
from gpurobot.device.distributed import World
from gpurobot.learn.collector import RolloutCollector
from gpurobot.learn.overlap import OverlappedRollouts, shared_threads
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.settings.config import TrainConfig, assign, defaults

ROUNDS, ITERATIONS, WARM_UP = 5, 4, 2
CPU = torch.device("cpu")


def learner(case: Overlap, overlap: bool) -> PPO:
  """Return a learner of a case, with or without overlap."""
  module = tasks.load(case.task)
  config: TrainConfig = assign(defaults(module), {**case.settings, "overlap": overlap})
  random = Random(config.seed, config.num_envs)
  with threads.use(shared_threads(config, CPU, CPU)[0]):
    env = module.Task(config.env, config.num_envs, CPU, random=random, training=True)
  return PPO(env, config, World(), OverlappedRollouts if overlap else RolloutCollector)


def timed(one: PPO) -> Callable[[int], float]:
  """Return a function that trains for some iterations and returns the steps per second."""

  def iterate(count: int) -> float:
    start, before = time.perf_counter(), one.steps
    for _ in range(count):
      one.collect()
      one.update()
    return (one.steps - before) / (time.perf_counter() - start)

  return iterate


def measure(case: Overlap) -> None:
  """Print the speeds of one case and their ratio."""
  pair = [timed(learner(case, overlap)) for overlap in (False, True)]
  for iterate in pair:
    iterate(WARM_UP)
  speeds = [[iterate(ITERATIONS) for iterate in pair] for _ in range(ROUNDS)]
  alone, both = (statistics.median(row[index] for row in speeds) for index in range(2))
  line(f"overlap.{case.name}.in_turn_steps_per_second", alone)
  line(f"overlap.{case.name}.at_once_steps_per_second", both)
  line(f"overlap.{case.name}.ratio", statistics.median(row[1] / row[0] for row in speeds))
  line(f"overlap.{case.name}.goal", case.goal)


def run() -> None:
  """Measure all cases."""
  for case in OVERLAP:
    measure(case)
