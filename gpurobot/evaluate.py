"""Evaluate a policy: python -m gpurobot.evaluate checkpoint=<run folder or .pt file> [key=value ...].

Actions are the policy's means. Every environment contributes the same number of whole episodes, its first
ones, so short episodes do not count more often than long ones.
"""

import dataclasses
import math
import sys

import torch

from gpurobot.config import option
from gpurobot.env import VecEnv
from gpurobot.gymnasium_env import GymnasiumEnv
from gpurobot.policy import Policy
from gpurobot.trained import Engine, Program, load, start


@dataclasses.dataclass
class Evaluation(Program):
  """Settings of an evaluation."""

  episodes: int = option(100, "episodes to average over, rounded up to a multiple of num_envs", low=1)
  engine: Engine = option(
    Engine.own,
    "own; mujoco: MuJoCo C in float64 on the same model; gymnasium: a gym/* task's unmodified environment",
  )
  num_envs: int | None = option(None, "environments side by side; default: one for each episode", low=1)


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
  num_envs = settings.num_envs or settings.episodes
  trained = load(settings, num_envs, settings.engine)
  return run(trained.env, trained.policy, -(-settings.episodes // num_envs))


def show(settings: Evaluation) -> None:
  """Print the result as `name: value` lines."""
  result = evaluate(settings)
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


def main(argv: list[str]) -> None:
  """Evaluate as the words say."""
  start(Evaluation(), "python -m gpurobot.evaluate", argv, show)


if __name__ == "__main__":
  main(sys.argv[1:])
