"""Tasks in MuJoCo C, for tests of what a task does with any robot: no kernel has to be built."""

from types import ModuleType
from typing import Any

from gpurobot.learn.random import Random
from physics.parity import MujocoSimulation
from tasks import base


def build(
  module: ModuleType, num_envs: int = 2, *, training: bool = False, offset: int = 0, **settings: Any
) -> base.Task:
  """Return a task of a module; further keywords are fields of its Config."""
  kind, config = module.Task, module.Config(**settings)
  simulation = MujocoSimulation(kind.make_model(config), num_envs, kind.outputs)
  return kind(config, num_envs, random=Random(0, num_envs, offset), training=training, simulation=simulation)
