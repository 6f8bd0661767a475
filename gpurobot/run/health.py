"""Health checks of the log's rows: one warning per kind of trouble, with the settings that may help."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from gpurobot.learn.critic import LARGEST
from gpurobot.learn.loss import rate_limits
from gpurobot.learn.reward import transform
from gpurobot.run.returns import WINDOW, Score
from gpurobot.settings.algorithms import Critic, PPOConfig, Schedule
from gpurobot.settings.config import AlgorithmName, TrainConfig, policy_group

NUMBERS = ("kl", "entropy", "policy_loss", "value_loss")  # finite in every healthy row
AT_FLOOR = 1.2  # a standard deviation below this multiple of its minimum counts as at the minimum
CERTAIN = 0.02  # a discrete policy with less than this share of its initial entropy is deterministic
NOISE = math.e  # a standard deviation above it, for actions in [-1, 1], means pure noise
KL_EXPLODED, KL_STILL = 10.0, 0.1  # multiples of the target; ant and cartpole stay in 0.17 ... 1.4
DIVERGED = 1e-5  # acceptable share of environment steps that diverge
RUNAWAY = 2.0  # multiple of the largest possible return: Cartpole stays at 1.00, and a runaway passes 100
FAULTY = 0.05  # value loss below which a critic's error is less than a third of the returns' deviation


class LogRow(dict[str, float]):
  """Row of the log, column -> value; a missing column is nan, so that comparisons with it are false."""

  def __missing__(self, column: str) -> float:
    return math.nan


@dataclass(frozen=True)
class Symptom:
  """Sign of trouble, reported once it has been seen in every row of `patience` iterations."""

  seen: Callable[[LogRow], bool]
  warning: str  # format string: {row[x]} is the value of column x
  patience: int = 0  # [iterations]


def common_symptoms(algorithm: AlgorithmName) -> list[Symptom]:
  """Return the symptoms that any training may have."""
  lower = f"{algorithm}.lr"
  if algorithm is not AlgorithmName.distill:
    lower += f" or {algorithm}.reward_scale"
  remedy = f"lower {lower}, or try {policy_group(algorithm)}.precision=float32"
  return [
    Symptom(
      lambda row: any(not math.isfinite(row[name]) for name in NUMBERS if name in row),
      f"numbers are not finite (KL {{row[kl]:g}}, value loss {{row[value_loss]:g}}); {remedy}",
    ),
    Symptom(
      lambda row: row["skipped_updates"] > 0,
      "{row[skipped_updates]:.0f} optimiser steps were skipped, as their gradients were not finite; "
      f"{remedy}",
    ),
    Symptom(
      lambda row: row["nonfinite"] > DIVERGED * row["steps"],
      "{row[nonfinite]:.0f} environments diverged and were reset; python -m gpurobot.replay shows their last "
      "states: look for a long timestep, stiff contacts, high gains, or a reward that divides by zero",
    ),
    Symptom(
      lambda row: row["overflow"] > 0,
      "{row[overflow]:.0f} contacts exceeded the capacity and were dropped; set a larger moving_capacity in "
      "the Task",
    ),
  ]


def symptoms_of(config: TrainConfig) -> list[Symptom]:
  """Return the symptoms to look for in a training with these settings."""
  if config.algorithm is AlgorithmName.ppo:
    return symptoms(config.ppo, rate_limits(config.ppo, config.num_envs))
  return common_symptoms(config.algorithm)


def symptoms(ppo: PPOConfig, limits: tuple[float, float]) -> list[Symptom]:
  """Return the symptoms of PPO to look for; limits: smallest and largest scaled learning rate."""
  kl, adaptive = ppo.kl_target, ppo.schedule is Schedule.adaptive
  return [
    *common_symptoms(AlgorithmName.ppo),
    Symptom(
      lambda row: row["explained_variance"] < 0 and row["value_loss"] > FAULTY,
      "the critic explains nothing of the returns (explained variance {row[explained_variance]:.2g}); lower "
      "ppo.gamma, raise ppo.critic_coef, or let a critic group see what the reward depends on",
      patience=50,
    ),
    *value_symptoms(ppo),
    Symptom(
      lambda row: row["gain"] < 0.5 and is_certain(row, AT_FLOOR * math.exp(ppo.log_std_min)),
      "entropy has collapsed to {row[entropy]:.3g} while the return is low; raise ppo.entropy_coef or lower "
      "ppo.lr",
    ),
    Symptom(
      lambda row: row["action/std"] > NOISE,
      "the policy is pure noise: actions in [-1, 1] have the standard deviation {row[action/std]:.2g}; lower "
      "ppo.entropy_coef or raise ppo.reward_scale",
    ),
    Symptom(
      lambda row: row["kl"] > KL_EXPLODED * kl,
      f"the policy changes too fast: its KL divergence is {{row[kl]:.2g}}, the target {kl:g}; lower ppo.lr, "
      "ppo.lr_max or ppo.epochs",
      patience=5,  # in a healthy training it happens once in hundreds of iterations
    ),
    Symptom(
      lambda row: adaptive and row["learning_rate"] <= 1.001 * limits[0] and row["kl"] > 2 * kl,
      "the learning rate is at its lower limit and the policy still changes too fast; lower ppo.epochs, or "
      "raise ppo.kl_target or num_envs",
      patience=20,
    ),
    Symptom(
      lambda row: adaptive and row["learning_rate"] >= 0.999 * limits[1] and row["kl"] < KL_STILL * kl,
      "the learning rate is at its upper limit and the policy hardly changes; check that the reward depends "
      "on the actions, then raise ppo.lr_max or ppo.reward_scale",
      patience=50,
    ),
  ]


def value_symptoms(ppo: PPOConfig) -> list[Symptom]:
  """Return the symptoms of values that cannot be right."""
  return [
    Symptom(
      lambda row: abs(row["value/mean"]) * (1 - ppo.gamma) > RUNAWAY * largest(row, ppo) > 0,
      "the values ran away: their mean is {row[value/mean]:.3g}, over twice what all rewards can sum to; if "
      "a critic group sees the episode's age, write ppo.bootstrap=next; otherwise lower ppo.gamma or "
      "ppo.critic_coef",
      patience=20,
    ),
    Symptom(
      lambda row: ppo.critic is Critic.twohot and abs(row["value/mean"]) > LARGEST / 2,
      f"values of {{row[value/mean]:.3g}} are close to the {LARGEST:.0f} that ppo.critic=twohot can hold; "
      "lower ppo.reward_scale, or write ppo.reward_scale=null",
    ),
  ]


def largest(row: LogRow, ppo: PPOConfig) -> float:
  """Return the largest transformed reward of a step so far, without its sign; novelty has no bound."""
  if ppo.rnd.weight or ppo.rnd.weight_final:
    return math.inf
  raw = torch.tensor(row["largest reward"])
  if ppo.amp.style_weight:
    raw = ppo.amp.task_weight * raw + ppo.amp.style_weight
  return float(transform(raw, ppo.reward_transform, row["reward_scale"]))


def is_certain(row: LogRow, floor: float) -> bool:
  """Return whether the policy is deterministic: its standard deviation at `floor`, or its entropy near 0."""
  if math.isnan(row["action/std"]):
    return row["entropy"] < CERTAIN * row["first entropy"]
  return row["action/std"] <= floor


class Health:
  """Health monitor of one run."""

  def __init__(self, symptoms: Sequence[Symptom]) -> None:
    """Monitor a training for these symptoms."""
    self._symptoms = list(symptoms)  # those not reported yet
    self._since: dict[Symptom, float] = {}  # the last iteration without a symptom that is seen since then
    self._first, self._last = LogRow(), LogRow()
    self._score, self._returns = Score(), (math.inf, -math.inf)  # its minimum and maximum so far
    self._largest = 0.0  # raw reward of a step, without its sign

  def check(self, row: Mapping[str, float]) -> list[str]:
    """Return the warnings for a row, each kind once per run."""
    extended = self._compare(LogRow(row))
    found = [symptom for symptom in self._symptoms if self._persists(symptom, extended)]
    self._symptoms = [symptom for symptom in self._symptoms if symptom not in found]
    self._last = extended
    return [symptom.warning.format(row=extended) for symptom in found]

  def _persists(self, symptom: Symptom, row: LogRow) -> bool:
    """Return whether a symptom has been seen for as long as its patience."""
    if not symptom.seen(row):
      self._since.pop(symptom, None)
      return False
    before = self._last or row  # the first row of a resumed run has a late iteration
    return row["iteration"] - self._since.setdefault(symptom, before["iteration"]) >= symptom.patience

  def _compare(self, row: LogRow) -> LogRow:
    """Return the row with three columns that compare it with earlier rows.

    "gain": the score of the returns relative to its minimum and maximum so far, 0 ... 1. "first entropy":
    the one of row one. "largest reward": of a step so far, without its sign; not every row has a sparse one.
    """
    self._first = self._first or row
    self._score.add(row["return"], row.get("episodes", WINDOW))
    mean, (low, high) = self._score.mean, self._returns
    if mean is not None:
      low, high = self._returns = (min(low, mean), max(high, mean))
    gain = (mean - low) / (high - low) if mean is not None and high > low else math.nan
    self._largest = max(self._largest, *(abs(row[f"reward/{end}"]) for end in ("min", "max")))
    known = {"gain": gain, "first entropy": self._first["entropy"], "largest reward": self._largest}
    return LogRow(row | known)
