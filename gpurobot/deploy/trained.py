"""A trained policy and a world to act in: what the programs that use a checkpoint begin with."""

import dataclasses
import typing
from collections.abc import Callable
from enum import StrEnum

import torch

import tasks
from gpurobot import cli
from gpurobot.config import ConfigError, TrainConfig, assign, leaves, option, pairs, to_dict
from gpurobot.deploy.gymnasium_env import GymnasiumEnv
from gpurobot.deploy.policy import Policy
from gpurobot.device.distributed import World
from gpurobot.learn.agent import Spaces
from gpurobot.learn.env import VecEnv
from gpurobot.learn.random import Random
from gpurobot.run import checkpoint
from physics.parity import MujocoSimulation


class Engine(StrEnum):
  """What simulates the policy's world."""

  own = "own"
  mujoco = "mujoco"
  gymnasium = "gymnasium"


@dataclasses.dataclass
class PolicySettings:
  """What every program about a trained policy can be told."""

  checkpoint: str | None = option(None, "run folder or .pt file of the policy")
  seed: int = option(0, "of the episodes' starts", low=0)
  device: str = option("cpu", "cpu, cuda or cuda:<index>")
  debug: bool = option(False, "show where in the program a mistake was found")
  env: typing.Any = option(None, "the task's settings, as trained: env.<key>=<value> changes one")


@dataclasses.dataclass(frozen=True)
class Trained:
  """A policy, the settings of its training, and environments for it."""

  config: TrainConfig
  env: VecEnv | GymnasiumEnv
  policy: Policy


P = typing.TypeVar("P", bound=PolicySettings)


def start(settings: P, name: str, argv: list[str], run: Callable[[P], None]) -> None:
  """Run a program called `name` with its settings and `key=value` words, the task's own among them."""
  cli.start(settings, name, argv, run, parse)


def parse(settings: P, words: list[str]) -> P:
  """Return settings with words set, the task's own among them; raise ConfigError or CheckpointError."""
  source = dict(word.split("=", 1) for word in words if "=" in word).get("checkpoint")
  if source:
    settings = dataclasses.replace(settings, env=read(source)[0].env)
  return assign(settings, pairs(words, leaves(settings)))


def read(source: str | None, device: str = "cpu") -> tuple[TrainConfig, dict[str, typing.Any]]:
  """Return a checkpoint's settings and content; raise ConfigError or CheckpointError where there is none."""
  if source is None:
    raise ConfigError("checkpoint=<run folder or .pt file> is missing")
  saved = checkpoint.read(source, device)
  if "learner" not in saved:
    raise ConfigError(f"'{source}' holds no policy; python -m gpurobot.replay file={source} shows it")
  task = saved["config"]["task"]
  try:
    module = tasks.load(task)
  except ValueError as error:
    raise ConfigError(f"'{source}' is of the task '{task}': {error}") from error
  return checkpoint.configure(source, saved["config"], module), saved


def load(settings: PolicySettings, num_envs: int, engine: Engine = Engine.own) -> Trained:
  """Return the policy and `num_envs` environments as they are outside of training, in the engine asked for.

  Raises ConfigError or CheckpointError where checkpoint, device or engine do not fit.
  """
  device = World().device(settings.device)
  config, saved = read(settings.checkpoint, str(device))
  config = dataclasses.replace(config, env=settings.env or config.env)
  env = _make_env(config, num_envs, settings.seed, device, engine)
  if not isinstance(env, GymnasiumEnv):
    _check_fit(settings.checkpoint, saved["learner"], env)
  return Trained(config, env, Policy(saved["learner"], config.ppo, num_envs, env.device))


def _check_fit(source: str | None, learner: dict[str, typing.Any], env: VecEnv) -> None:
  """Raise ConfigError where a policy sees or does something else than the environments show and take."""
  for name, before, now in zip(Spaces._fields, Spaces.saved(learner), Spaces.of(env), strict=True):
    if before != now:
      raise ConfigError(
        f"'{source}' was trained with {name}={before}, the task has {now} now: train anew, or undo what was "
        "changed in its file or settings"
      )


def _changed(config: TrainConfig) -> list[str]:
  """Return the task's settings that are not its defaults, as words."""
  now, default = (to_dict(env) for env in (config.env, tasks.load(config.task).Config()))
  return [f"env.{key}={value}" for key, value in now.items() if value != default[key]]


def _make_env(
  config: TrainConfig, num_envs: int, seed: int, device: torch.device, engine: Engine
) -> VecEnv | GymnasiumEnv:
  if engine is Engine.gymnasium:
    changed = _changed(config)
    if changed:
      raise ConfigError(f"engine=gymnasium has the task as it comes, not {' '.join(changed)}")
    return GymnasiumEnv(config.task, num_envs, seed)
  kind, simulation = tasks.load(config.task).Task, None
  if engine is Engine.mujoco:
    device = torch.device("cpu")  # where MuJoCo C is; the policy is where its environments are
    simulation = MujocoSimulation(kind.make_model(config.env), num_envs, kind.outputs)
  random = Random(seed, num_envs, 0, device)
  env: VecEnv = kind(config.env, num_envs, device, random=random, training=False, simulation=simulation)
  return env
