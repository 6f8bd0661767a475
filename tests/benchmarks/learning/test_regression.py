"""Short trainings beside kept curves: the pace by hand, and what is judged."""

import pytest

from benchmarks import cases
from benchmarks.learning import curves, regression

GOAL = cases.Goal("error", 0.1, 60, least=False)


def climb(slope, count=20, column="return", start=0.0):
  """Return the rows of a training whose column changes by `slope` in each row of 100,000 steps."""
  return [{"seed": 0.0, "steps": 1e5 * (i + 1), column: start + slope * i} for i in range(count)]


@pytest.mark.parametrize(("slope", "pace"), [(1.0, 1.0), (0.5, 0.7), (0.1, 0.3), (0.0, 0.1)])
def test_the_pace_is_how_far_the_kept_curve_had_got(slope, pace):
  """After ten rows the means of the last five are 7, 3.5, 0.7, 0; the curve's reach that at 10, 7, 3, 1."""
  rows = climb(slope, 10)
  assert regression.pace(rows, climb(1.0), "return", least=True) == pytest.approx(pace)


def test_a_task_is_judged_by_its_goal_or_its_return():
  assert regression.judged(cases.Curve("quadruped", 30, (GOAL,))) == ("error", False)
  assert regression.judged(cases.Curve("biped", 30, (), shown="error")) == ("return", True)


def test_a_task_that_is_behind_fails(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(curves, "read", lambda _: [climb(1.0)])
  slopes = {"slow": 0.1, "quick": 2.0}
  monkeypatch.setattr(curves, "rows_of", lambda _, folder: climb(slopes[folder.name], 10))
  assert regression.run(["quadruped_getup", f"runs={tmp_path / 'quick'}"])
  assert not regression.run(["quadruped_getup", "ant", f"runs={tmp_path / 'quick'},{tmp_path / 'slow'}"])
  assert "| `quadruped_getup` | 1,000,000 | return | 7 | 14 | 1.7 |" in capsys.readouterr().out
