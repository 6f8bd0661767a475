"""Environments for the tests of tasks, small and without a random initial phase unless asked for."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import tasks
from gpurobot.random import Random
from tasks import base

MakeTask = Callable[..., base.Task]
# Settings of tasks that are big by themselves.
SMALL = {"quadruped_rough": {"terrain_levels": 3, "terrain_size": 4.0}}
SHAKEN = Path(__file__).with_name("shaken_cartpole.py")  # with all that a task may have


@pytest.fixture(params=[*tasks.available(), str(SHAKEN)], ids=lambda name: Path(name).stem)
def name(request: pytest.FixtureRequest) -> str:
  """Every task of the folder, and one that has all that a task may have."""
  return request.param


@pytest.fixture
def make_task() -> MakeTask:
  """Return a function that builds a task by name; further keywords are fields of its Config."""

  def make(name: str, num_envs: int = 8, *, seed: int = 0, offset: int = 0, training: bool = False, **fields):
    module = tasks.load(name)
    config = module.Config(**{**SMALL.get(name, {}), **fields})
    return module.Task(config, num_envs, random=Random(seed, num_envs, offset), training=training)

  return make


@pytest.fixture
def actions() -> Callable[[base.Task, int], torch.Tensor]:
  """Return a function that draws actions [steps, num_envs, num_actions] in [-1, 1], the same at each call."""

  def draw(task: base.Task, steps: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return 2 * torch.rand(steps, task.num_envs, task.num_actions, generator=generator) - 1

  return draw
