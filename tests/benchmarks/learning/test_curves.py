"""Learning curves: when a goal is met, what is kept, and the interval of a mean."""

import math

import pytest

from benchmarks import cases
from benchmarks.learning import curves

ROWS = [
  {"seed": 0, "seconds": 10.0, "return": math.nan, "error": 0.5},
  {"seed": 0, "seconds": 20.0, "return": 3.0, "error": 0.2},
  {"seed": 0, "seconds": 30.0, "return": 2.0, "error": 0.3},
]


def test_a_goal_is_met_at_its_level_or_beyond():
  assert curves.reached(ROWS, cases.Goal("return", 3.0, 60)) == 20
  assert curves.reached(ROWS, cases.Goal("return", 4.0, 60)) == math.inf
  assert curves.reached(ROWS, cases.Goal("error", 0.2, 60, least=False)) == 20
  assert curves.reached(ROWS, cases.Goal("error", 0.1, 60, least=False)) == math.inf


def test_interval_of_three_values_by_hand():
  assert curves.interval([1.0, 2.0, 3.0]) == pytest.approx(4.303 / math.sqrt(3))
  assert math.isnan(curves.interval([1.0]))


def test_what_is_kept_can_be_read_again(tmp_path, monkeypatch):
  monkeypatch.setattr(curves, "FOLDER", tmp_path)
  curve = cases.Curve("gym/Ant-v5", 30, (cases.Goal("error", 0.2, 60, least=False),))
  rows = ROWS + [row | {"seed": 1} for row in ROWS]
  curves.write(rows, curves.curve_path(curve.task).with_suffix(".csv"))
  assert (tmp_path / "gym-Ant-v5.csv").exists()
  runs = curves.read(curve)
  assert [len(run) for run in runs] == [3, 3]
  assert runs[1][1:] == rows[4:]
  curves.draw(curve, runs)
  assert (tmp_path / "gym-Ant-v5.png").exists()


def test_a_seed_that_is_trained_again_takes_the_place_of_the_kept_one():
  kept = [[{"seed": 0, "return": 1.0}], [{"seed": 2, "return": 2.0}]]
  new = [[{"seed": 2, "return": 3.0}], [{"seed": 1, "return": 4.0}]]
  assert curves.joined(kept, new) == [kept[0], new[1], new[0]]
  assert curves.joined([], new) == [new[1], new[0]]


def test_processor_time_is_the_utilisation_of_all_cores_by_hand(monkeypatch):
  monkeypatch.setattr(curves, "usable_cores", lambda: 4)
  log = [{"seconds": "10", "utilisation": "0.25"}, {"seconds": "30", "utilisation": "0.1"}]
  assert curves.processor_time(log) == pytest.approx([10.0, 18.0])
  assert all(map(math.isnan, curves.processor_time([row | {"memory/device": "1"} for row in log])))
