"""Evaluation of a policy: python -m gpurobot.evaluate checkpoint=<run folder or .pt file> [key=value ...].

Every environment contributes the same number of complete episodes, its first ones. Otherwise short episodes
would count more often than long ones.
"""

import dataclasses
import json
import math
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor

from gpurobot.deploy.gymnasium_env import GymnasiumEnv
from gpurobot.deploy.policy import Policy
from gpurobot.deploy.trained import Engine, PolicySettings, load, start
from gpurobot.learn.algorithm import counted
from gpurobot.learn.env import VecEnv
from gpurobot.learn.random import Random
from gpurobot.run.output import aligned
from gpurobot.settings.config import MOST_ENVS, ConfigError, option

Z = 1.96  # 95 % of a normal distribution lie within this many standard deviations of the mean
SEEN = "seen"  # sum of an episode's observations, which identifies a repetition
MATRIX = 2  # dimensions of an observation group; an image has more
ALIKE = 1e-5  # relative difference of two episodes that rounding explains: batches round by their size


@dataclasses.dataclass
class EvaluationSettings(PolicySettings):
  """Evaluation of a policy."""

  episodes: int = option(
    100, "episodes to average over, rounded up to a multiple of num_envs", low=1, high=MOST_ENVS
  )
  engine: Engine = option(
    Engine.own,
    "own: gpurobot's; mujoco: MuJoCo C in float64 on the same model; gymnasium: a gym/* task's original "
    "environment",
  )
  gap: bool = option(
    False, "evaluate in engine=own too (with mujoco: from the same initial states) and print the differences"
  )
  num_envs: int | None = option(
    None, "number of parallel environments; null: one for each episode", low=1, high=MOST_ENVS
  )
  perturbed: bool = option(
    False, "act with the noise, delays, pushes and random robots of training; otherwise without"
  )
  sampled: bool = option(False, "sample actions as in training; otherwise the policy's means are used")
  json: str | None = option(None, "file to write the figures to, as JSON")


@dataclasses.dataclass(frozen=True)
class Figure:
  """A mean over episodes, with its confidence interval."""

  value: float
  deviations: Tensor  # deviation of each episode from the mean [episodes]
  least: float = 0.0  # lower bound of `interval`, for episodes that are all alike

  @classmethod
  def mean(cls, sums: Tensor, counts: Tensor) -> "Figure":
    """Return the sum of `sums` [episodes] over the sum of `counts` [episodes]; nan if the latter is 0."""
    value = sums.sum() / counts.sum()
    return cls(float(value), (sums - value * counts) / counts.mean())

  @classmethod
  def share(cls, happened: Tensor) -> "Figure":
    """Return the share of episodes with an event, from `happened` [episodes], 0 or 1 each.

    If all or none have it, the interval is Wilson's (1927), z^2 / (n + z^2), not 0.
    """
    value, n = happened.mean(), len(happened)
    return cls(float(value), happened - value, Z**2 / (n + Z**2))

  @property
  def interval(self) -> float:
    """Half the width of the 95 % confidence interval; nan for a single episode."""
    n = len(self.deviations)
    return max(Z * float(self.deviations.std()) / math.sqrt(n), self.least) if n > 1 else math.nan

  def __sub__(self, other: "Figure") -> "Figure":
    """Return the difference of two figures over paired episodes."""
    least = max(self.least, other.least)
    return Figure(self.value - other.value, self.deviations - other.deviations, least)


@torch.no_grad()
def run(env: VecEnv | GymnasiumEnv, policy: Policy, rounds: int) -> dict[str, Figure]:
  """Return figures over the first `rounds` episodes of each environment, by name.

  return, length [steps]: means over episodes. success: share of the successful episodes, if the task defines
  success. diverged: share of episodes with a diverged simulation. return/<term>: part of the return due to
  one reward term, weighted. The task's metrics: means over all steps. Warns if all episodes are the same.
  """
  names: list[str] = []
  finished = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
  obs, ended = env.reset(), torch.ones_like(finished, dtype=torch.bool)
  while bool((finished < rounds).any()):
    step = env.step(policy(obs, ended))
    quantities = _quantities(step) | {SEEN: _sizes(obs)}
    if not names:
      names, metrics = list(quantities), list(step["metrics"].keys())
      running = torch.zeros(len(names), env.num_envs, dtype=torch.float64, device=env.device)
      results = running.repeat(rounds, 1, 1)
    running += torch.stack([quantity.to(running.dtype) for quantity in quantities.values()])
    ended = step["terminated"] | step["truncated"] | ~step["valid"]
    counted = (ended & (finished < rounds)).nonzero().squeeze(1)
    results[finished[counted], :, counted] = running[:, counted].T
    finished += ended
    running.masked_fill_(ended, 0)
    obs = step["obs"]
  sums = dict(zip(names, results.transpose(0, 1).flatten(1).cpu(), strict=True))
  if len(sums[SEEN]) > 1 and all(_is_constant(sums[name]) for name in ("return", "length", SEEN)):
    warnings.warn(
      f"all {len(sums[SEEN])} episodes are the same, so the intervals say nothing; "
      "sampled=true makes them differ",
      stacklevel=3,  # past torch.no_grad
    )
  return {name: _figure(name, sums, metrics) for name in names if name != SEEN}


def _sizes(obs: TensorDict) -> Tensor:
  """Return the sum of the magnitudes [num_envs] of all observations of the policy."""
  parts = [obs["policy"], *(image for image in obs.values() if image.ndim > MATRIX)]
  return torch.stack([part.flatten(1).abs().sum(1, dtype=torch.float32) for part in parts]).sum(0)


def _is_constant(sums: Tensor) -> bool:
  """Return whether all episodes have the same sum [episodes], up to rounding."""
  return bool(torch.allclose(sums, sums[:1], rtol=ALIKE, atol=0))


def _quantities(step: TensorDict) -> dict[str, Tensor]:
  """Return a step's contributions to an episode's sums [num_envs], by name; 0 where the step diverged."""
  valid, reward, success = step["valid"], step["reward"], step.get("success", None)
  quantities = {"return": reward, "length": torch.ones_like(reward)}
  quantities |= {} if success is None else {"success": success}
  quantities |= {f"return/{name}": term for name, term in step["reward_terms"].items()}
  quantities |= dict(step["metrics"].items())
  return {name: x.where(valid, 0) for name, x in quantities.items()} | {"diverged": ~valid}


def _figure(name: str, sums: Mapping[str, Tensor], metrics: list[str]) -> Figure:
  """Return the figure of a quantity from its sums over each episode [episodes]."""
  if name in ("success", "diverged"):
    return Figure.share(sums[name])
  lengths = sums["length"]
  return Figure.mean(sums[name], lengths if name in metrics else torch.ones_like(lengths))


def evaluate(settings: EvaluationSettings, engine: Engine) -> dict[str, Figure]:
  """Return the figures of a checkpoint's policy; raise ConfigError or CheckpointError on bad settings."""
  num_envs = settings.num_envs or settings.episodes
  if settings.perturbed and engine is not Engine.own:
    raise ConfigError(f"perturbed=true acts in engine=own; leave it out with engine={engine}")
  trained = load(settings, num_envs, engine, settings.perturbed)
  if settings.sampled:
    trained.policy.random = Random(settings.seed, num_envs, 0, trained.env.device)
  figures = run(trained.env, trained.policy, -(-settings.episodes // num_envs))
  dropped = int(trained.env.counters().get("overflow", 0)) if isinstance(trained.env, VecEnv) else 0
  if dropped:
    print(f"warning: {dropped} contacts exceeded the capacity and were dropped", file=sys.stderr)
  return figures


def show(settings: EvaluationSettings) -> None:
  """Print a table of the figures with their 95 % intervals, and write them to the file `json`."""
  if settings.gap and settings.engine is Engine.own:
    raise ConfigError("gap=true compares another engine with engine=own; add engine=mujoco")
  found = evaluate(settings, settings.engine)
  figures = {settings.engine.name: found}
  if settings.gap:
    own = evaluate(settings, Engine.own)
    figures |= {"own": own, "gap": {name: found[name] - own[name] for name in found if name in own}}
  episodes = len(found["return"].deviations)
  print(table(episodes, figures))
  if settings.json is not None:
    write(
      Path(settings.json), {"episodes": episodes} | {name: _plain(part) for name, part in figures.items()}
    )


def table(episodes: int, figures: Mapping[str, Mapping[str, Figure]]) -> str:
  """Return a table with a line for each figure and a column for each engine, by name: value +- interval."""
  rows = [[counted(episodes, "episode"), *figures]]
  for name in next(iter(figures.values())):
    found = [part[name] for part in figures.values() if name in part]
    rows.append([name, *(f"{figure.value:.6g} +- {figure.interval:.3g}" for figure in found)])
  return "\n".join(aligned(rows))


def _plain(figures: Mapping[str, Figure]) -> dict[str, dict[str, float | None]]:
  """Return value and interval of each figure for JSON, which has no nan: it is null."""

  def finite(number: float) -> float | None:
    return number if math.isfinite(number) else None

  return {
    name: {"value": finite(figure.value), "interval_95": finite(figure.interval)}
    for name, figure in figures.items()
  }


def write(path: Path, content: Mapping[str, Any]) -> None:
  """Write a JSON file; raise ConfigError if the file cannot be written."""
  try:
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
  except OSError as error:
    raise ConfigError(f"json={path} cannot be written: {error.strerror}") from error


def main(argv: list[str]) -> None:
  """Evaluate a policy with the settings in `argv`."""
  start(EvaluationSettings(), "python -m gpurobot.evaluate", argv, show)


if __name__ == "__main__":
  main(sys.argv[1:])
