"""Trained policy with its environments: the common start of the programs that use a checkpoint."""

import dataclasses
import shlex
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

import torch

import tasks
from gpurobot.deploy import demos
from gpurobot.deploy.gymnasium_env import GymnasiumEnv
from gpurobot.deploy.policy import Policy
from gpurobot.device.distributed import World
from gpurobot.learn.agent import Spaces
from gpurobot.learn.env import VecEnv
from gpurobot.learn.identity import check_hidden, compare
from gpurobot.learn.own_code import OF_TRAINING
from gpurobot.learn.random import Random
from gpurobot.run import checkpoint
from gpurobot.run.returns import WINDOW
from gpurobot.settings.config import (
  CHANGED,
  AlgorithmName,
  ConfigError,
  TrainConfig,
  algorithm_settings,
  assign,
  leaves,
  option,
  pairs,
  policy_group,
  to_dict,
)
from gpurobot.shell import cli
from physics.engines import MujocoSimulation, OwnFileSimulation
from tasks.base import Task


class Engine(StrEnum):
  """Simulator of the environments."""

  own = "own"
  mujoco = "mujoco"
  file = "file"
  gymnasium = "gymnasium"


@dataclasses.dataclass
class PolicySettings:
  """Settings that all programs for trained policies share."""

  checkpoint: str | None = option(
    None, "run folder or .pt file of the policy; best, after a run folder: its best policy"
  )
  demo: str | None = option(None, "policy that comes with gpurobot instead, by its task: ant, cartpole, ...")
  task: str | None = option(None, "its task, if that is your own: a dotted module path or a .py file")
  network: str | None = option(
    None, "its network, if that is your own: <file.py or module>:<class or function>"
  )
  changed: bool = option(False, CHANGED)
  seed: int = option(0, "seed of the episodes' initial states", low=0, high=2**64 - 1)
  device: str = option("cpu", "device: cpu, cuda, cuda:<index>")
  debug: bool = option(False, "show the traceback of an error")
  env: typing.Any = option(None, "settings of the task, as in training; env.<key>=<value> changes one")


@dataclasses.dataclass(frozen=True)
class Trained:
  """A policy, its training settings, and environments for it."""

  config: TrainConfig
  env: VecEnv | GymnasiumEnv
  policy: Policy


P = typing.TypeVar("P", bound=PolicySettings)
KEY, BEST = "checkpoint=", "best"


def start(settings: P, name: str, argv: list[str], run: Callable[[P], None]) -> None:
  """Run the program `name` with settings from `key=value` arguments, including the task's settings."""
  cli.start(settings, name, argv, run, parse)


def parse(settings: P, words: list[str]) -> P:
  """Return settings with arguments applied, including the task's; raise ConfigError or CheckpointError.

  A word may be the run folder alone, and `checkpoint=best` after it names the run's best policy.
  """
  words = _with_best(cli.with_folder(words, "checkpoint"))
  early = dict(word.split("=", 1) for word in words if "=" in word)
  if early.get("demo") and early.get("checkpoint"):
    raise ConfigError(f"demo={early['demo']} and checkpoint={early['checkpoint']} are two policies; name one")
  if early.get("demo"):
    early["checkpoint"] = str(demos.find(early["demo"]))
    words = [*words, f"checkpoint={early['checkpoint']}"]
  if early.get("checkpoint"):
    config, _ = read(early["checkpoint"], early)
    settings = dataclasses.replace(settings, env=config.env)
  return assign(settings, pairs(words, leaves(settings)))


def _with_best(words: list[str]) -> list[str]:
  """Return arguments with the last checkpoint, if it is BEST, replaced by the file of the best policy."""
  named = [word.removeprefix(KEY) for word in words if word.startswith(KEY)]
  if named[-1:] != [BEST] or (len(named) == 1 and checkpoint.exists(BEST)):
    return words
  if len(named) == 1:
    raise ConfigError(f"checkpoint={BEST} follows a run folder, as in: <run folder> checkpoint={BEST}")
  run = Path(named[-2])
  path = (run if run.is_dir() else run.parent) / checkpoint.BEST
  if not path.is_file():
    raise ConfigError(
      f"'{path.parent}' has no best policy: it takes {WINDOW} episodes; leave checkpoint={BEST} out"
    )
  return [*words, f"{KEY}{path}"]


def read(
  source: str | None, given: Mapping[str, typing.Any] = MappingProxyType({}), device: str = "cpu"
) -> tuple[TrainConfig, dict[str, typing.Any]]:
  """Return a checkpoint's settings and content; `given` are the settings that the user gives, by key.

  Raises ConfigError, CheckpointError or TaskError if it has no policy, or if its task cannot be imported.
  """
  saved = read_policy(source, device)
  settings, task = saved["config"], given.get("task")
  module = tasks.load(settings["task"], source, task)
  settings = settings | {"task": task or settings["task"]} | dict.fromkeys(OF_TRAINING)
  key = f"{policy_group(settings.get('algorithm', AlgorithmName.ppo))}.network"
  network = trusted_network(str(source), settings.get(key), given.get("network"))
  settings, given = settings | {key: network}, {**given, key: network}
  return checkpoint.configure(str(source), settings, module, given), saved


def trusted_network(source: str, saved: str | None, given: str | None) -> str | None:
  """Return the reference to a policy's own network; the user must give it, as its code runs."""
  if saved and not given:
    argument = shlex.quote(f"network={saved}")
    raise ConfigError(f"'{source}' was trained with the network '{saved}', which runs code: add {argument}")
  if given and not saved:
    raise ConfigError(f"network={given}: '{source}' was trained with hidden layers; leave network= out")
  return given


def read_policy(source: str | None, device: str = "cpu") -> dict[str, typing.Any]:
  """Return a checkpoint's content without imports; raise ConfigError or CheckpointError without one."""
  if source is None:
    raise ConfigError("checkpoint=<run folder or .pt file> is missing")
  saved = checkpoint.read(source, device)
  if "learner" not in saved:
    raise ConfigError(f"'{source}' holds no policy; show it with: python -m gpurobot.replay file={source}")
  return saved


def load(
  settings: PolicySettings, num_envs: int, engine: Engine = Engine.own, perturbed: bool = False
) -> Trained:
  """Return the policy and `num_envs` evaluation environments in the given engine.

  perturbed: with the noise, pushes and random robots of training.
  Raises ConfigError or CheckpointError if the checkpoint, the device or the engine does not fit.
  """
  device = World().device(settings.device)
  config, saved = read(settings.checkpoint, to_dict(settings), str(device))
  config = dataclasses.replace(config, env=settings.env or config.env, changed=settings.changed)
  env = _make_env(config, num_envs, settings.seed, device, engine, perturbed)
  with checkpoint.fitting(settings.checkpoint, "its own settings"):
    if not isinstance(env, GymnasiumEnv):
      check_fit(str(settings.checkpoint), saved["learner"], env, settings.changed)
      ranks = _ranks(str(settings.checkpoint), saved)
      if isinstance(env, Task) and ranks:
        hold_levels(env, [rank["env"] for rank in ranks])
    policy = Policy(saved["learner"], algorithm_settings(config), num_envs, env.device)
    return Trained(config, env, policy)


def _ranks(source: str, saved: Mapping[str, typing.Any]) -> Sequence[Mapping[str, typing.Any]]:
  """Return the state of each rank; the best policy has its run's, other policies alone have none."""
  path = Path(source)
  if path.name == checkpoint.BEST and checkpoint.exists(path.parent):
    saved = checkpoint.read(path.parent)
  ranks: Sequence[Mapping[str, typing.Any]] = saved["learner"].get("ranks", ())
  return ranks


def check_fit(source: str, learner: Mapping[str, typing.Any], env: VecEnv, changed: bool) -> None:
  """Raise ConfigError if the policy's observations or actions differ from the environments'."""
  then, now = Spaces.saved(learner), Spaces.of(env)
  check_hidden(source, then.names, then.obs_dims["policy"], env)
  for name, before, after in zip(Spaces._fields, then, now, strict=True):
    if name != "names" and before != after:
      raise ConfigError(
        f"'{source}' was trained with {name}={before}, but the task now has {after}: train a new policy, or "
        "undo the change in the task's file or settings"
      )
  kept = then.names or (now.names if Path(source).parent == demos.FOLDER else {})
  compare(source, kept, now.names, changed)


def hold_levels(env: Task, states: Sequence[Mapping[str, typing.Any]]) -> None:
  """Copy the lasting buffers of a training, such as curriculum levels, to environments, and freeze them.

  states: the task's `state_dict` of each rank. The environments are spread evenly over the training's.
  """
  for name, buffer in env.lasting.items():
    if all(name in state["memory"] for state in states):  # older checkpoints may lack one
      saved = torch.cat([state["memory"][name] for state in states])
      buffer.copy_(saved[torch.arange(env.num_envs) * len(saved) // env.num_envs])
  env.levels_held = True


def _changed(config: TrainConfig) -> list[str]:
  """Return the task's settings that differ from its defaults, as arguments."""
  now, default = (to_dict(env) for env in (config.env, tasks.load(config.task).Config()))
  return [f"env.{key}={value}" for key, value in now.items() if value != default[key]]


def has_file(config: TrainConfig) -> bool:
  """Return whether a task can walk in the file of a robot, and has one."""
  return hasattr(tasks.load(config.task).Task, "own_file") and bool(config.env.robot)


def _simulation(kind: typing.Any, settings: typing.Any, num_envs: int, engine: Engine) -> MujocoSimulation:
  model = kind.make_model(settings)
  if engine is Engine.mujoco:
    return MujocoSimulation(model, num_envs, kind.outputs)
  try:
    return OwnFileSimulation(model, num_envs, kind.outputs, kind.own_file(settings))
  except ValueError as error:
    raise ConfigError(f"engine=file: {error}") from error


def _make_env(
  config: TrainConfig, num_envs: int, seed: int, device: torch.device, engine: Engine, perturbed: bool
) -> VecEnv | GymnasiumEnv:
  if engine is Engine.gymnasium:
    changed = _changed(config)
    if changed:
      words = " ".join(changed)
      raise ConfigError(f"engine=gymnasium supports only the task's default settings, not {words}")
    return GymnasiumEnv(config.task, num_envs, seed)
  if engine is Engine.file and not has_file(config):
    raise ConfigError("engine=file needs a robot's file: train with task=walk env.robot=<file>")
  kind, simulation = tasks.load(config.task).Task, None
  if engine is not Engine.own:
    device = torch.device("cpu")  # MuJoCo C runs on the CPU, and the policy with it
    simulation = _simulation(kind, config.env, num_envs, engine)
  random = Random(seed, num_envs, 0, device)
  env: VecEnv = kind(config.env, num_envs, device, random=random, training=perturbed, simulation=simulation)
  if isinstance(env, Task):
    env.training = False  # episodes start at their beginning, and curricula stay as they are
  return env
