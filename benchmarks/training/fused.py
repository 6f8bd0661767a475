"""PPO on a CPU with operations fused from the first steps on, as a long training has them, and its log."""

import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import tasks
from gpurobot.device import tape
from gpurobot.device.distributed import World
from gpurobot.device.graph import WARM_UPS
from gpurobot.device.tape import Tape
from gpurobot.fusion.schedule import Fusion, fuse
from gpurobot.learn.ppo import PPO
from gpurobot.learn.random import Random
from gpurobot.settings.config import Switch, TrainConfig
from gpurobot.shell import cli

ROOT = Path(__file__).parents[2]


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


def logged(*command: str, **environment: str) -> list[dict[str, float]]:
  """Train by the words of a command after Python's; return steps, seconds and speed by row of its log."""
  with tempfile.TemporaryDirectory() as folder:
    words = [sys.executable, *command, "log_every=5", f"run_dir={folder}/run"]
    subprocess.run(words, cwd=ROOT, env=os.environ | environment, check=True, stdout=subprocess.DEVNULL)
    with Path(folder, "run", "metrics.csv").open() as file:
      names = ("steps", "seconds", "steps_per_second")
      return [{name: float(row[name]) for name in names} for row in csv.DictReader(file)]
