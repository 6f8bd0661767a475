"""Pruning: settings without hope stop early, by the median rule or by successive halving."""

import statistics
import warnings
from collections.abc import Callable, Sequence
from enum import StrEnum
from fractions import Fraction

import numpy as np

from gpurobot.search.results import interquartile_mean
from gpurobot.search.trial import Trial

# Returns whether all trials have run, as far as they could; False if the user has interrupted them.
Run = Callable[[Sequence[Trial]], bool]
Rule = Callable[[Sequence[Sequence[float]]], list[int]]  # the settings that go on, see `best`


class Prune(StrEnum):
  """Rule by which settings stop early."""

  none = "none"
  median = "median"
  halving = "halving"


def parts(prune: Prune, count: int, rungs: int, reduction: int) -> list[Fraction]:
  """Return the parts of the limits after which `count` settings are compared; the last part is the whole.

  halving: each part is `reduction` times the one before, and that share of the settings goes on. median:
  `rungs` equal parts.
  """
  if prune is Prune.none:
    return [Fraction(1)]
  if prune is Prune.median:
    return [Fraction(rung + 1, rungs) for rung in range(rungs)]
  powers = [Fraction(1)]
  while powers[0].denominator * reduction <= count:
    powers.insert(0, powers[0] / reduction)
  return powers


def best(histories: Sequence[Sequence[float]], reduction: int) -> list[int]:
  """Return the indices of the best settings by their last score: one of `reduction`, at least one.

  Successive halving (Jamieson and Talwalkar 2016, arXiv 1502.07943). Of equal settings the first are best,
  with a warning if all are equal.
  """
  scores = {history[-1] for history in histories}
  if len(histories) > 1 and len(scores) == 1 and np.isfinite(scores.pop()):
    warnings.warn(
      f"all {len(histories)} settings have the same score so far, and the first of them go on; write a "
      "metric= that moves earlier, such as metric=return",
      stacklevel=2,
    )
  order = sorted(range(len(histories)), key=lambda index: -histories[index][-1])
  return sorted(order[: max(1, len(histories) // reduction)])


def above_median(histories: Sequence[Sequence[float]]) -> list[int]:
  """Return the indices of the settings with a best score so far of at least the median of all mean scores.

  The median stopping rule (Golovin et al. 2017, Google Vizier). A failed setting, with a last score of
  -inf, does not.
  """
  means = [float(np.mean(history)) for history in histories]
  middle = statistics.median_low(means)
  return [
    index for index, history in enumerate(histories) if np.isfinite(history[-1]) and max(history) >= middle
  ]


def prune_trials(groups: list[list[Trial]], ends: Sequence[Fraction], rule: Rule, run: Run) -> list[Trial]:
  """Run settings part by part, and return their trials, each with the part of the limits that it was given.

  groups: the trials of each setting, which differ in their seeds and stop together. ends: see `parts`.
  """
  alive, latest = groups, {trial.name: trial for group in groups for trial in group}
  for part in ends:
    alive = [[trial.until(part) for trial in group] for group in alive]
    present = [trial for group in alive for trial in group]
    latest |= {trial.name: trial for trial in present}
    for trial in present:
      trial.begin_parts()
    if not run(present):
      break
    for trial in present:
      trial.keep_score()
    if part < 1:
      alive = [alive[index] for index in rule([history(group, ends, part) for group in alive])]
  return [*latest.values()]


def history(group: Sequence[Trial], ends: Sequence[Fraction], part: Fraction) -> list[float]:
  """Return the score of a setting after each part so far: the interquartile mean over its seeds."""
  known = [trial.scores() for trial in group]
  return [
    float(interquartile_mean(np.array([scores.get(end, -np.inf) for scores in known])))
    for end in ends
    if end <= part
  ]
