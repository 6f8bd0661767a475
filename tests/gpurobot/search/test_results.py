import numpy as np
import pytest

from gpurobot import sweep
from gpurobot.search.results import bootstrap, compare, interquartile_mean
from tests.gpurobot.search.trials import TOY, finish


def test_the_interquartile_mean_drops_a_quarter_at_either_end():
  assert interquartile_mean(np.array([9.0, 1.0, 2.0, 3.0])) == 2.5
  assert interquartile_mean(np.array([5.0, 100.0, 3.0, 4.0, -7.0])) == 4.0
  assert interquartile_mean(np.array([1.0, 2.0, 6.0])) == 3.0
  assert list(interquartile_mean(np.array([[4.0, 8.0], [1.0, 2.0]]))) == [6.0, 1.5]


def test_the_interval_covers_95_percent():
  # Of two values, a resample is (a, a) with probability 1/4, (b, b) with 1/4: both ends are in the interval.
  assert bootstrap(np.array([1.0, 2.0])) == (1.0, 2.0)
  # Of many normal values the middle half's mean has a standard error of 1.09 / sqrt(n) (its influence
  # function: Huber 1964), here 0.0385: the interval is nearly 4 of them wide.
  values = np.random.default_rng(1).standard_normal(800)
  low, high = bootstrap(values)
  assert low < interquartile_mean(values) < high
  assert 0.13 < high - low < 0.18
  assert bootstrap(values) == (low, high)


def test_settings_are_compared_over_their_seeds(tmp_path):
  settings, runs = sweep.plan([*TOY, "seed=0,1,2,3,4", "ppo.gamma=0.9,0.8", f"folder={tmp_path}", "level=50"])
  slow, fast = [run for run in runs if run.config.ppo.gamma == 0.9], runs[1::2]
  for run, return_, speed in zip(slow, (10.0, 20.0, 30.0, 40.0, 1e6), (1, 2, 3, 4, 5), strict=True):
    finish(run, return_, speed, level=50 - run.config.seed // 3)  # seeds 3 and 4 do not reach it
  finish(fast[0], 7.0)
  finish(fast[1], None)
  rows = compare(runs, settings.level)
  assert [row["setting"] for row in rows] == ["ppo.gamma=0.9", "ppo.gamma=0.8"]
  assert [(row["runs"], row["missing"]) for row in rows] == [(5, 0), (1, 4)]
  assert (rows[0]["return"], rows[0]["steps_per_second"]) == (30, 3)
  assert rows[0]["seconds_to_level"] is None  # a run of the middle half is among those that do not reach it
  assert [result["seconds_to_level"] for result in rows[0]["results"]] == [3, 3, 3, None, None]
  assert compare(slow, 49)[0]["seconds_to_level"] == pytest.approx((2 + 2 + 3) / 3)
  assert (rows[1]["return"], rows[1]["return_low"], rows[1]["return_high"]) == (7, 7, 7)
