"""Figures of a policy over whole episodes, with their confidence intervals."""

import dataclasses
import math
import warnings
from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from gpurobot.deploy.gymnasium_env import GymnasiumEnv
from gpurobot.learn.algorithm import counted
from gpurobot.learn.env import VecEnv
from gpurobot.run.output import aligned

Z = 1.96  # 95 % of a normal distribution lie within this many standard deviations of the mean
SEEN = "seen"  # sum of an episode's observations, which identifies a repetition
MATRIX = 2  # dimensions of an observation group; an image has more
ALIKE = 1e-5  # relative difference of two episodes that rounding explains: batches round by their size
# Returns actions [num_envs, num_actions] for observation groups, and where an episode starts; see `Policy`.
Act = Callable[[Mapping[str, Tensor], Tensor], Tensor]


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
def run(env: VecEnv | GymnasiumEnv, policy: Act, rounds: int) -> dict[str, Figure]:
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


def table(episodes: int, figures: Mapping[str, Mapping[str, Figure]]) -> str:
  """Return a table with a line for each figure and a column for each engine, by name: value +- interval.

  Cells without a figure are empty. Figures that are 0 in all columns share the last line.
  """
  rows, zero = [[counted(episodes, "episode"), *figures]], []
  for name in dict.fromkeys(name for part in figures.values() for name in part):
    found = [part.get(name) for part in figures.values()]
    if any(one and (one.value, one.interval) != (0, 0) for one in found):
      rows.append([name, *(_cell(one) if one else "" for one in found)])
    else:
      zero.append(name)
  return "\n".join([*aligned(rows), *([f"0 in all episodes: {', '.join(zero)}"] if zero else [])])


def _cell(one: Figure) -> str:
  """Return value and interval, both with the decimals of two digits of the interval."""
  if not 0 < one.interval < math.inf:
    return f"{one.value:.6g} +- {one.interval:.3g}"
  decimals = max(0, 1 - math.floor(math.log10(one.interval)))
  return f"{one.value:.{decimals}f} +- {one.interval:.{decimals}f}"
