"""Evaluate a policy: python -m gpurobot.evaluate checkpoint=<run folder or .pt file> [key=value ...].

Actions are the policy's means. Every environment contributes the same number of whole episodes, its first
ones, so short episodes do not count more often than long ones.
"""

import dataclasses
import math
import sys
from enum import StrEnum

import torch

import tasks
from gpurobot import checkpoint, cli
from gpurobot.config import Config, ConfigError, assign, defaults, leaves, option, pairs
from gpurobot.distributed import World
from gpurobot.env import VecEnv
from gpurobot.gymnasium_env import GymnasiumEnv
from gpurobot.policy import Policy
from gpurobot.random import Random
from physics.parity import MujocoSimulation


class Engine(StrEnum):
  """What simulates the policy's world."""

  own = "own"
  mujoco = "mujoco"
  gymnasium = "gymnasium"


@dataclasses.dataclass
class Evaluation:
  """Settings of an evaluation."""

  checkpoint: str | None = option(None, "run folder or .pt file of the policy")
  episodes: int = option(100, "episodes to average over, rounded up to a multiple of num_envs", low=1)
  engine: Engine = option(
    Engine.own,
    "own; mujoco: MuJoCo C in float64 on the same model; gymnasium: a gym/* task's unmodified environment",
  )
  num_envs: int | None = option(None, "environments side by side; default: one for each episode", low=1)
  seed: int = option(0, "of the episodes' starts", low=0)
  device: str = option("cpu", "cpu, cuda or cuda:<index>")


@dataclasses.dataclass
class Result:
  """Means over the episodes."""

  returns: torch.Tensor  # of each episode [episodes]
  lengths: torch.Tensor  # of each episode [episodes] [steps]
  success: float  # share of the episodes that reached their aim; nan where the task has none
  metrics: dict[str, float]  # mean over all steps of the episodes


@torch.no_grad()
def run(env: VecEnv | GymnasiumEnv, policy: Policy, rounds: int) -> Result:
  """Return the statistics of the first `rounds` episodes of each environment."""
  sums: dict[str, torch.Tensor] = {}
  current = torch.zeros(3, env.num_envs, dtype=torch.float64, device=env.device)  # return, length, success
  finished = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
  results = torch.zeros(rounds, 3, env.num_envs, dtype=torch.float64, device=env.device)
  never = torch.full_like(current[0], math.nan)
  obs, ended = env.reset(), torch.ones_like(finished, dtype=torch.bool)
  while bool((finished < rounds).any()):
    step = env.step(policy(obs, ended))
    counted = finished < rounds
    current[0] += step["reward"]
    current[1] += 1
    current[2] = step.get("success", default=never)
    for name, value in step["metrics"].items():
      sums[name] = sums.get(name, 0) + (value * counted).sum(dtype=torch.float64)
    ended = step["terminated"] | step["truncated"] | ~step["valid"]
    for index in range(rounds):
      results[index] = torch.where(ended & (finished == index), current, results[index])
    finished += ended
    current.masked_fill_(ended, 0)
    obs = step["obs"]
  returns, lengths, success = results.transpose(0, 1).flatten(1)
  return Result(
    returns,
    lengths,
    float(success.mean()),
    {name: float(total / lengths.sum()) for name, total in sums.items()},
  )


def evaluate(settings: Evaluation) -> Result:
  """Return the statistics of a checkpoint's policy; raise ConfigError or CheckpointError on bad settings."""
  if settings.checkpoint is None:
    raise ConfigError("checkpoint=<run folder or .pt file> is missing")
  device = World().device(settings.device)
  saved = checkpoint.read(settings.checkpoint, device)
  module = tasks.load(saved["config"]["task"])
  config: Config = assign(defaults(module), saved["config"])
  num_envs = settings.num_envs or settings.episodes
  env = _make_env(settings, config, num_envs, device)
  policy = Policy(saved["learner"], config.ppo, num_envs, env.device)
  return run(env, policy, -(-settings.episodes // num_envs))


def _make_env(
  settings: Evaluation, config: Config, num_envs: int, device: torch.device
) -> VecEnv | GymnasiumEnv:
  """Return the environments of a run's configuration, in the engine asked for."""
  if settings.engine is Engine.gymnasium:
    try:
      return GymnasiumEnv(config.task, num_envs, settings.seed)
    except ValueError as error:
      raise ConfigError(str(error)) from error
  kind, simulation = tasks.load(config.task).Task, None
  if settings.engine is Engine.mujoco:
    simulation = MujocoSimulation(kind.make_model(config.env), num_envs, kind.outputs)
  random = Random(settings.seed, num_envs, 0, device)
  env: VecEnv = kind(config.env, num_envs, device, random=random, training=False, simulation=simulation)
  return env


def main(argv: list[str]) -> None:
  """Print the result as `name: value` lines."""
  settings = Evaluation()
  if {"--help", "-h"} & set(argv):
    print(cli.describe(settings, "python -m gpurobot.evaluate"))
    return
  try:
    settings = assign(settings, pairs(argv, leaves(settings)))
    result = evaluate(settings)
  except (ConfigError, checkpoint.CheckpointError) as error:
    cli.fail(str(error), World())
  count = len(result.returns)
  interval = 1.96 * float(result.returns.std()) / math.sqrt(count) if count > 1 else math.nan
  print(f"episodes: {count}")
  print(f"return: {float(result.returns.mean()):.6g}")
  print(f"return_interval_95: {interval:.3g}")
  print(f"length: {float(result.lengths.mean()):.6g}")
  if not math.isnan(result.success):
    print(f"success: {result.success:.6g}")
  for name, value in result.metrics.items():
    print(f"{name}: {value:.6g}")


if __name__ == "__main__":
  main(sys.argv[1:])
