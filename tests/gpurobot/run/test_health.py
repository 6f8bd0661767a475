import csv
import math
from pathlib import Path

import pytest

from gpurobot.run.health import Health, symptoms
from gpurobot.settings.algorithms import AMPConfig, Critic, PPOConfig, RewardTransform, RNDConfig, Schedule

LIMITS = (1e-5, 1e-2)
HEALTHY = {
  "return": 100.0,
  "kl": 0.008,
  "entropy": 3.0,
  "action/std": 0.5,
  "policy_loss": -0.01,
  "value_loss": 0.1,
  "explained_variance": 0.9,
  "learning_rate": 1e-3,
  "skipped_updates": 0.0,
  "overflow": 0.0,
  "nonfinite": 0.0,
}


def watch(*rows: dict[str, float], every: int = 10, **settings) -> list[str]:
  """Return the warnings of rows, one per `every` iterations of 1,000 steps, as changes to a healthy one."""
  health = Health(symptoms(PPOConfig(**settings), LIMITS))
  counts = [{"iteration": every * i, "steps": 1000 * every * i} for i in range(1, len(rows) + 1)]
  return [
    warning
    for count, row in zip(counts, rows, strict=True)
    for warning in health.check({**HEALTHY, **count, **row})
  ]


VALUES = {"reward_scale": 0.1, "reward/min": -2.0, "reward/max": 1.0}
CERTAIN = {"action/std": 1.1 * math.exp(-3), "episodes": 40.0}
UNLUCKY = [{"return": 0.0, "episodes": 200.0}, {"episodes": 200.0}, {"return": 5.0, "episodes": 1.0}]
HEALTHY_RUNS = {
  "healthy": ([{}] * 3, {}),
  # Values of equal rewards are at the bound itself, as Cartpole's are, and a critic errs a little.
  "values that rewards can sum to": ([VALUES | {"value/mean": -19.5}] * 10, {}),
  "values without a bound": ([VALUES | {"value/mean": 1e9}] * 10, {"gamma": 1.0}),
  "one unlucky episode": ([CERTAIN | row for row in UNLUCKY], {}),
  "constant rate": ([{"learning_rate": LIMITS[0], "kl": 0.017}] * 10, {"schedule": Schedule.constant}),
  "a critic that errs little": ([{"explained_variance": -0.1, "value_loss": 0.001}] * 10, {}),
}


@pytest.mark.parametrize(("rows", "settings"), HEALTHY_RUNS.values(), ids=HEALTHY_RUNS)
def test_a_healthy_run_is_not_commented(rows, settings):
  assert watch(*rows, **settings) == []


@pytest.mark.parametrize(
  ("row", "cause", "setting"),
  [
    ({"kl": math.nan, "value_loss": math.inf}, "numbers are not finite (KL nan, value loss", "precision"),
    ({"skipped_updates": 2.0}, "2 optimiser steps were skipped", "ppo.lr"),
    ({"nonfinite": 3.0}, "3 environments diverged", "timestep"),
    ({"overflow": 1.0}, "1 contacts exceeded the capacity", "moving_capacity"),
    ({"action/std": 2.8}, "the policy is pure noise: actions in [-1, 1] have", "2.8; lower ppo.entropy_coef"),
  ],
)
def test_what_is_wrong_at_once_is_told_once_with_cause_and_setting(row, cause, setting):
  first, *others = watch({}, row, row, row)
  assert first.startswith(cause)
  assert setting in first
  assert others == []


@pytest.mark.parametrize(
  ("row", "cause", "iterations"),
  [
    ({"explained_variance": -0.1, "value_loss": 0.4}, "the critic explains nothing", 50),
    ({"kl": 0.081}, "the policy changes too fast: its KL divergence is 0.081, the target 0.008", 5),
    ({"learning_rate": LIMITS[0], "kl": 0.017}, "the learning rate is at its lower limit", 20),
    (  # rewards of 0.2 sum to 20, and their symlog to 18.2
      {"reward_scale": 0.1, "reward/min": -2.0, "reward/max": 1.0, "value/mean": -36.6},
      "the values ran away: their mean is -36.6",
      20,
    ),
    ({"learning_rate": LIMITS[1], "kl": 0.0007}, "the learning rate is at its upper limit", 50),
  ],
)
@pytest.mark.parametrize("every", [1, 10, 100])
def test_what_may_pass_is_told_when_it_stays(row, cause, iterations, every):
  enough = -(-iterations // every)
  assert watch({}, *[row] * (enough - 1), {}, *[row] * (enough - 1), every=every) == []
  (warning,) = watch({}, *[row] * enough, every=every)
  assert warning.startswith(cause)


def test_a_policy_without_randomness_is_healthy_where_its_return_is_at_its_best():
  certain = {"action/std": 1.1 * math.exp(-3), "entropy": -1.5}
  assert watch({"return": 0.0}, {}, certain, {"return": 90.0} | certain) == []
  (warning,) = watch({"return": 0.0}, {}, {"return": 40.0} | certain)
  assert warning.startswith("entropy has collapsed to -1.5")
  assert watch({"return": 0.0}, {}, {"return": 40.0}, certain, log_std_min=-4.0) == []


def test_a_policy_of_choices_has_collapsed_where_little_of_its_first_entropy_is_left():
  choices = {"action/std": math.nan}
  assert watch({"return": 0.0} | choices, choices, {"return": 40.0, "entropy": 0.07} | choices) == []
  assert len(watch({"return": 0.0} | choices, choices, {"return": 40.0, "entropy": 0.05} | choices)) == 1


def test_values_of_sparse_rewards_are_healthy():
  """No row after the first has the reward of 5 itself; before any reward nothing is known."""
  row = {"reward_scale": 1.0, "reward/min": 0.0, "reward/max": 0.1, "value/mean": 100.0}
  plain = {"reward_transform": RewardTransform.none}
  assert watch(row | {"reward/max": 5.0}, *[row] * 30, **plain) == []
  assert watch(*[row | {"reward/max": 0.0}] * 30, **plain) == []
  assert len(watch(*[row] * 30, **plain)) == 1


def test_values_of_learned_rewards_are_healthy():
  """Of style rewards up to 2 beside the task's of up to 1; novelty has no bound."""
  row = {"reward_scale": 1.0, "reward/min": 0.0, "reward/max": 1.0, "value/mean": 290.0}
  assert len(watch(*[row] * 30, reward_transform=RewardTransform.none)) == 1
  for learned in ({"amp": AMPConfig(style_weight=2.0)}, {"rnd": RNDConfig(weight=0.1)}):
    assert watch(*[row] * 30, reward_transform=RewardTransform.none, **learned) == []


def test_a_twohot_critic_near_its_largest_value_is_named():
  row = {"value/mean": -12_000.0}
  assert watch(row) == []
  (warning,) = watch(row, critic=Critic.twohot)
  assert warning.startswith("values of -1.2e+04 are close to the 22025 that ppo.critic=twohot can hold")


def test_one_environment_that_diverges_among_very_many_is_healthy():
  assert watch({"nonfinite": 1.0}, every=100) == []
  assert len(watch({"nonfinite": 2.0}, every=100)) == 1


def test_a_resumed_run_is_watched_from_where_it_begins():
  health = Health(symptoms(PPOConfig(), LIMITS))
  row = HEALTHY | {"explained_variance": -0.1, "value_loss": 0.4, "steps": 1e9}
  found = [health.check(row | {"iteration": iteration}) for iteration in (1000, 1049, 1050)]
  assert [len(warnings) for warnings in found] == [0, 0, 1]


@pytest.mark.parametrize("task", ["ant", "cartpole"])
def test_recorded_runs_give_no_warning(task):
  with (Path(__file__).parents[3] / "docs/curves" / f"{task}.csv").open() as file:
    rows = list(csv.DictReader(file))
  for seed in {row["seed"] for row in rows}:
    health = Health(symptoms(PPOConfig(), LIMITS))
    of_seed = [{name: float(value) for name, value in row.items()} for row in rows if row["seed"] == seed]
    assert of_seed
    assert [health.check(row) for row in of_seed] == [[]] * len(of_seed)
