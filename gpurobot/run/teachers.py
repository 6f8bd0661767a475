"""Teachers of a distillation, from the checkpoints that the settings name."""

from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from gpurobot.learn.agent import restored
from gpurobot.learn.own_code import OF_TRAINING, TEACHER_NETWORK
from gpurobot.learn.teacher import Teacher
from gpurobot.run import checkpoint
from gpurobot.settings.algorithms import AlgorithmConfig
from gpurobot.settings.config import (
  AlgorithmName,
  ConfigError,
  TrainConfig,
  algorithm_settings,
  policy_group,
)


def load(config: TrainConfig, task: ModuleType, num_envs: int, device: torch.device) -> list[Teacher]:
  """Return the teachers of `num_envs` environments of a task; none if the algorithm has none.

  They are of that task, or of one that it extends. Raises ConfigError or CheckpointError if one is missing,
  of another task, or has a network of the user's own that the settings do not name.
  """
  if config.algorithm is not AlgorithmName.distill:
    return []
  sources = [source.strip() for source in str(config.teacher).split(",")]
  if "" in sources:
    raise ConfigError(f"teacher={config.teacher} has nothing beside a comma; write <one>,<another>")
  return [_load(source, config, task, num_envs, device) for source in sources]


def extended(task: ModuleType) -> list[str]:
  """Return the tasks that a task extends by its class, the nearest first."""
  modules = [kind.__module__.split(".") for kind in task.Task.__mro__[1:] if kind.__name__ == "Task"]
  return [module[-1] for module in modules if module[-1] != "base" and "shared" not in module]


def _load(source: str, config: TrainConfig, task: ModuleType, num_envs: int, device: torch.device) -> Teacher:
  saved = checkpoint.read(source, device)
  other = saved["config"]["task"]
  known = [Path(config.task).stem, *extended(task)]
  if Path(other).stem not in known:
    names = "' or '".join([config.task, *known[1:]])
    raise ConfigError(f"teacher={source} is of task '{other}', not of '{names}'; take one of this task")
  if "learner" not in saved:
    raise ConfigError(f"teacher={source} holds no policy; take the checkpoint of a run")
  settings = _settings(source, saved["config"], task, config.distill.teacher_network)
  with checkpoint.fitting(source, "its own settings"):
    agent = restored(saved["learner"], settings, device)
  if other != config.task:  # one that extends it may have another scene
    agent.spaces = agent.spaces._replace(names={**agent.spaces.names, "model": {}})
  return Teacher(source, agent, num_envs)


def _settings(source: str, saved: dict[str, Any], task: ModuleType, network: str | None) -> AlgorithmConfig:
  """Return the settings of a teacher's algorithm; a network of the user's own is the user's to name."""
  key = f"{policy_group(saved.get('algorithm', AlgorithmName.ppo))}.network"
  if saved.get(key) and not network:
    raise ConfigError(
      f"teacher={source} has the network '{saved[key]}', which runs code: add {TEACHER_NETWORK}={saved[key]}"
    )
  if network and not saved.get(key):
    raise ConfigError(f"{TEACHER_NETWORK}={network}: teacher={source} has hidden layers; leave it out")
  own = {name: value for name, value in saved.items() if not name.startswith("env.")}
  values = own | dict.fromkeys(OF_TRAINING) | {key: network}
  return algorithm_settings(checkpoint.configure(source, values, task, {key}))
