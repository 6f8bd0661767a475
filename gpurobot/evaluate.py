"""Evaluate a policy: python -m gpurobot.evaluate checkpoint=<run folder or .pt file> [key=value ...].

Every environment contributes the same number of whole episodes, its first ones, so short episodes do not
count more often than long ones.
"""

import dataclasses
import math
import sys
from collections.abc import Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from gpurobot.config import ConfigError, option
from gpurobot.deploy.gymnasium_env import GymnasiumEnv
from gpurobot.deploy.policy import Policy
from gpurobot.deploy.trained import Engine, PolicySettings, load, start
from gpurobot.learn.env import VecEnv
from gpurobot.learn.random import Random

Z = 1.96  # standard deviations about the mean of a normal distribution that hold 95 % of it


@dataclasses.dataclass
class EvaluationSettings(PolicySettings):
  """Settings of an evaluation."""

  episodes: int = option(100, "episodes to average over, rounded up to a multiple of num_envs", low=1)
  engine: Engine = option(
    Engine.own,
    "own; mujoco: MuJoCo C in float64 on the same model; gymnasium: a gym/* task's unmodified environment",
  )
  gap: bool = option(
    False, "evaluate in engine=own too, in MuJoCo C from the same starts, and say how far off it is"
  )
  num_envs: int | None = option(None, "environments side by side; default: one for each episode", low=1)
  sampled: bool = option(False, "draw actions as in training, in place of the policy's means")


@dataclasses.dataclass(frozen=True)
class Figure:
  """A mean over episodes, and how sure it is."""

  value: float
  deviations: Tensor  # of each episode from it [episodes]
  least: float = 0.0  # that `interval` is, however much alike the episodes are

  @classmethod
  def mean(cls, sums: Tensor, counts: Tensor) -> "Figure":
    """Return the sum of `sums` over that of `counts`, [episodes] each; nan where these are 0."""
    value = sums.sum() / counts.sum()
    return cls(float(value), (sums - value * counts) / counts.mean())

  @classmethod
  def share(cls, happened: Tensor) -> "Figure":
    """Return the share of episodes [episodes] in which something happened.

    Where it happened in all or in none, the interval is Wilson's (1927), z^2 / (n + z^2), not 0.
    """
    value, n = happened.mean(), len(happened)
    return cls(float(value), happened - value, Z**2 / (n + Z**2))

  @property
  def interval(self) -> float:
    """Half the width of the 95 % interval about the value; nan of one episode."""
    n = len(self.deviations)
    return max(Z * float(self.deviations.std()) / math.sqrt(n), self.least) if n > 1 else math.nan

  def __sub__(self, other: "Figure") -> "Figure":
    """Return the difference of two figures over episodes that belong together, pair by pair."""
    least = max(self.least, other.least)
    return Figure(self.value - other.value, self.deviations - other.deviations, least)


@torch.no_grad()
def run(env: VecEnv | GymnasiumEnv, policy: Policy, rounds: int) -> dict[str, Figure]:
  """Return figures over the first `rounds` episodes of each environment, by name.

  return, length [steps]: of an episode. success: share of the episodes that reached their aim, where the
  task has one. diverged: share that the simulation broke off. return/<term>: what each term of the reward,
  weighted, adds to the return. The task's metrics: means over all steps.
  """
  names: list[str] = []
  finished = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
  obs, ended = env.reset(), torch.ones_like(finished, dtype=torch.bool)
  while bool((finished < rounds).any()):
    step = env.step(policy(obs, ended))
    if not names:
      names, metrics = list(_quantities(step)), list(step["metrics"].keys())
      running = torch.zeros(len(names), env.num_envs, dtype=torch.float64, device=env.device)
      results = running.repeat(rounds, 1, 1)
    running += torch.stack([quantity.to(running.dtype) for quantity in _quantities(step).values()])
    ended = step["terminated"] | step["truncated"] | ~step["valid"]
    counted = (ended & (finished < rounds)).nonzero().squeeze(1)
    results[finished[counted], :, counted] = running[:, counted].T
    finished += ended
    running.masked_fill_(ended, 0)
    obs = step["obs"]
  sums = dict(zip(names, results.transpose(0, 1).flatten(1).cpu(), strict=True))
  return {name: _figure(name, sums, metrics) for name in names}


def _quantities(step: TensorDict) -> dict[str, Tensor]:
  """Return what a step adds to the sums over an episode [num_envs], by name; nothing if it diverged."""
  valid, reward, success = step["valid"], step["reward"], step.get("success", None)
  quantities = {"return": reward, "length": torch.ones_like(reward)}
  quantities |= {} if success is None else {"success": success}
  quantities |= {f"return/{name}": term for name, term in step["reward_terms"].items()}
  quantities |= dict(step["metrics"].items())
  return {name: x.where(valid, 0) for name, x in quantities.items()} | {"diverged": ~valid}


def _figure(name: str, sums: Mapping[str, Tensor], metrics: list[str]) -> Figure:
  """Return the figure of a quantity from the sums over each episode [episodes]."""
  if name in ("success", "diverged"):
    return Figure.share(sums[name])
  lengths = sums["length"]
  return Figure.mean(sums[name], lengths if name in metrics else torch.ones_like(lengths))


def evaluate(settings: EvaluationSettings, engine: Engine) -> dict[str, Figure]:
  """Return the figures of a checkpoint's policy; raise ConfigError or CheckpointError on bad settings."""
  num_envs = settings.num_envs or settings.episodes
  trained = load(settings, num_envs, engine)
  if settings.sampled:
    trained.policy.random = Random(settings.seed, num_envs, 0, trained.env.device)
  figures = run(trained.env, trained.policy, -(-settings.episodes // num_envs))
  dropped = int(trained.env.counters().get("overflow", 0)) if isinstance(trained.env, VecEnv) else 0
  if dropped:
    print(f"warning: {dropped} contacts found no room and were dropped", file=sys.stderr)
  return figures


def show(settings: EvaluationSettings) -> None:
  """Print the figures as `name: value` lines, each with its 95 % interval: value +- interval."""
  if settings.gap and settings.engine is Engine.own:
    raise ConfigError("gap=true compares another engine with engine=own: add engine=mujoco")
  found = evaluate(settings, settings.engine)
  print(f"episodes: {len(found['return'].deviations)}")
  _print(found)
  if settings.gap:
    own = evaluate(settings, Engine.own)
    _print(own, "own.")
    _print({name: found[name] - own[name] for name in found if name in own}, "gap.")


def _print(figures: Mapping[str, Figure], prefix: str = "") -> None:
  for name, figure in figures.items():
    print(f"{prefix}{name}: {figure.value:.6g}")
    print(f"{prefix}{name}_interval_95: {figure.interval:.3g}")


def main(argv: list[str]) -> None:
  """Evaluate as the words say."""
  start(EvaluationSettings(), "python -m gpurobot.evaluate", argv, show)


if __name__ == "__main__":
  main(sys.argv[1:])
