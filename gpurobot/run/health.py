"""Health checks on the log's rows: one warning for each kind of trouble, with its cause and the setting."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpurobot.config import PPOConfig, Schedule

NUMBERS = ("kl", "entropy", "policy_loss", "value_loss")  # finite in every healthy row
AT_FLOOR = 1.2  # times the floor of the standard deviation is as good as there
CERTAIN = 0.02  # of its first entropy is left to a policy of choices that has made up its mind
NOISE = math.e  # standard deviation of actions in [-1, 1] that is noise alone
KL_EXPLODED, KL_STILL = 10.0, 0.1  # times the target; ant and cartpole keep to 0.17 ... 1.4
DIVERGED = 1e-5  # share of environment steps
FAULTY = 0.05  # value loss: a critic that errs by less than a third of the returns' spread has explained them


class LogRow(dict[str, float]):
  """A row of the log, column -> value; what it lacks is nan, of which every comparison is false."""

  def __missing__(self, column: str) -> float:
    return math.nan


@dataclass(frozen=True)
class Symptom:
  """A sign of trouble: told once it has been seen in every row of `patience` iterations."""

  seen: Callable[[LogRow], bool]
  warning: str  # a format: {row[x]} is the value of column x
  patience: int = 0


SYMPTOMS = (
  Symptom(
    lambda row: any(not math.isfinite(row[name]) for name in NUMBERS if name in row),
    "numbers are not finite (KL {row[kl]:g}, value loss {row[value_loss]:g}); lower ppo.lr or "
    "ppo.reward_scale, or try ppo.precision=float32",
  ),
  Symptom(
    lambda row: row["skipped_updates"] > 0,
    "{row[skipped_updates]:.0f} steps of the optimiser were skipped: their gradients were not finite; lower "
    "ppo.lr or ppo.reward_scale, or try ppo.precision=float32",
  ),
  Symptom(
    lambda row: row["nonfinite"] > DIVERGED * row["steps"],
    "{row[nonfinite]:.0f} environments have diverged and were reset; python -m gpurobot.replay shows how: "
    "look for a long timestep, stiff contacts, strong gains, or a reward that divides by zero",
  ),
  Symptom(
    lambda row: row["overflow"] > 0,
    "{row[overflow]:.0f} contacts found no room and were dropped; write a larger moving_capacity in the Task",
  ),
  Symptom(
    lambda row: row["explained_variance"] < 0 and row["value_loss"] > FAULTY,
    "the critic explains nothing of the returns (explained variance {row[explained_variance]:.2g}); lower "
    "ppo.gamma, raise ppo.critic_coef, or let a critic group see what the reward depends on",
    patience=50,
  ),
)


def symptoms(ppo: PPOConfig, limits: tuple[float, float]) -> list[Symptom]:
  """Return what to look for under these settings; limits: of the learning rate as it is scaled."""
  kl, adaptive = ppo.kl_target, ppo.schedule is Schedule.adaptive
  return [
    *SYMPTOMS,
    Symptom(
      lambda row: row["gain"] < 0.5 and is_certain(row, AT_FLOOR * math.exp(ppo.log_std_min)),
      "entropy has collapsed to {row[entropy]:.3g} and the return is not at its best; raise ppo.entropy_coef "
      "or lower ppo.lr",
    ),
    Symptom(
      lambda row: row["action/std"] > NOISE,
      "the policy is noise: actions in [-1, 1] vary by {row[action/std]:.2g}; lower ppo.entropy_coef or "
      "raise ppo.reward_scale",
    ),
    Symptom(
      lambda row: row["kl"] > KL_EXPLODED * kl,
      f"the policy jumps: its KL divergence is {{row[kl]:.2g}}, the target {kl:g}; lower ppo.lr, ppo.lr_max "
      "or ppo.epochs",
      patience=5,  # once in hundreds of iterations a healthy policy jumps too
    ),
    Symptom(
      lambda row: adaptive and row["learning_rate"] <= 1.001 * limits[0] and row["kl"] > 2 * kl,
      "the learning rate is at its lower limit and the policy still moves too far; lower ppo.epochs or "
      "ppo.lr_min, or raise ppo.kl_target or num_envs",
      patience=20,
    ),
    Symptom(
      lambda row: adaptive and row["learning_rate"] >= 0.999 * limits[1] and row["kl"] < KL_STILL * kl,
      "the learning rate is at its upper limit and the policy hardly moves: where the reward does depend on "
      "the actions, raise ppo.lr_max or ppo.reward_scale",
      patience=50,
    ),
  ]


def is_certain(row: LogRow, floor: float) -> bool:
  """Tell whether the policy has no randomness left: a standard deviation at its floor, or a choice made."""
  if math.isnan(row["action/std"]):
    return row["entropy"] < CERTAIN * row["first entropy"]
  return row["action/std"] <= floor


class Health:
  """Watches the rows of one run."""

  def __init__(self, ppo: PPOConfig, limits: tuple[float, float]) -> None:
    """Look for the signs of a training with these settings and these limits of the learning rate."""
    self._signs = symptoms(ppo, limits)  # those not told yet
    self._since: dict[Symptom, float] = {}  # the last iteration before a sign that has been seen ever since
    self._first, self._last = LogRow(), LogRow()
    self._returns = (math.inf, -math.inf)  # the least and the greatest so far

  def check(self, row: Mapping[str, float]) -> list[str]:
    """Return the warnings that a row gives rise to, each kind once in a run."""
    known = self._compare(LogRow(row))
    told = [sign for sign in self._signs if self._lasts(sign, known)]
    self._signs = [sign for sign in self._signs if sign not in told]
    self._last = known
    return [sign.warning.format(row=known) for sign in told]

  def _lasts(self, sign: Symptom, row: LogRow) -> bool:
    """Tell whether a sign has been seen for as long as its patience lasts."""
    if not sign.seen(row):
      self._since.pop(sign, None)
      return False
    before = self._last or row  # a resumed run begins late
    return row["iteration"] - self._since.setdefault(sign, before["iteration"]) >= sign.patience

  def _compare(self, row: LogRow) -> LogRow:
    """Return the row with what it says beside those before it.

    "gain": where its return lies between the least and the greatest so far, 0 ... 1.
    """
    self._first = self._first or row
    if math.isfinite(row["return"]):
      low, high = self._returns
      self._returns = (min(low, row["return"]), max(high, row["return"]))
    low, high = self._returns
    gain = (row["return"] - low) / (high - low) if high > low else math.nan
    return LogRow(row | {"gain": gain, "first entropy": self._first["entropy"]})
