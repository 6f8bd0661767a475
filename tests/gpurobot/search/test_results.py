import dataclasses

import numpy as np
import pytest
from rich.console import Console

from gpurobot import sweep
from gpurobot.search.results import bootstrap, compare, interquartile_mean, report
from gpurobot.search.trial import Measure
from gpurobot.settings.config import ConfigError
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
  rows = compare(runs, settings.metric)
  assert [row["setting"] for row in rows] == ["ppo.gamma=0.9", "ppo.gamma=0.8"]
  assert [(row["runs"], row["missing"]) for row in rows] == [(5, 0), (1, 4)]
  assert (rows[0]["return"], rows[0]["steps_per_second"]) == (30, 3)
  assert rows[0]["seconds_to_level"] is None  # a run of the middle half is among those that do not reach it
  assert [result["seconds_to_level"] for result in rows[0]["results"]] == [3, 3, 3, None, None]
  lower = [dataclasses.replace(run, measure=Measure(level=49)) for run in slow]
  assert compare(lower, "return")[0]["seconds_to_level"] == pytest.approx((2 + 2 + 3) / 3)
  assert (rows[1]["return"], rows[1]["return_low"], rows[1]["return_high"]) == (7, 7, 7)


def test_settings_are_compared_by_any_column_of_the_log(tmp_path):
  words = [*TOY, "ppo.gamma=0.9,0.8", f"folder={tmp_path}", "metric=error", "mode=min", "level=0.5"]
  settings, runs = sweep.plan(words)
  for run, errors in zip(runs, ("0.7 0.5 0.4", "nan 0.6 nan"), strict=True):
    finish(run, 1.0)
    rows = (f"{second},1.0,{error}\n" for second, error in enumerate(errors.split()))
    (run.folder / "metrics.csv").write_text("seconds,return,error\n" + "".join(rows))
  good, bad = compare(runs, settings.metric)
  assert (good["error"], good["error_low"], good["seconds_to_level"]) == (0.4, 0.4, 1)
  assert (bad["error"], bad["seconds_to_level"]) == (0.6, None)
  assert [run.score() for run in runs] == [-0.4, -0.6]
  report([good, bad], "error", tmp_path, Console(quiet=True))
  first = (tmp_path / "results.csv").read_text().splitlines()[0]
  assert first.split(",")[4:7] == ["error", "error_low", "error_high"]


def test_a_metric_that_no_log_has_is_told_by_name(tmp_path):
  settings, [run] = sweep.plan([*TOY, f"folder={tmp_path}", "metric=returns"])
  finish(run, 1.0)
  with pytest.raises(ConfigError, match=r"metric=returns is no column of '.*'; the nearest is 'return'"):
    compare([run], settings.metric)
