import csv
import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

from gpurobot import sweep
from gpurobot.search.pruning import Prune, above_median, best, parts, prune_trials
from gpurobot.search.trial import Trial
from tests.gpurobot import toy
from tests.gpurobot.search.trials import TOY, finish, train_here

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


def test_parts_of_the_limits():
  whole = Fraction(1)
  assert parts(Prune.none, 9, 5, 3) == [whole]
  assert parts(Prune.median, 9, 4, 3) == [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), whole]
  assert parts(Prune.halving, 9, 5, 3) == [Fraction(1, 9), Fraction(1, 3), whole]
  assert parts(Prune.halving, 8, 5, 3) == [Fraction(1, 3), whole]
  assert parts(Prune.halving, 1, 5, 2) == [whole]


def test_halving_keeps_the_best_of_so_many():
  assert best([[5.0, 1.0], [0.0, 3.0], [0.0, 2.0], [0.0, -math.inf]], 2) == [1, 2]
  assert best([[1.0], [-math.inf]], 3) == [0]
  assert best([[-math.inf], [-math.inf]], 3) == [0]  # all have failed


def test_halving_has_nothing_to_choose_by():
  with pytest.warns(UserWarning, match="all 2 settings have the same score so far, and the first"):
    assert best([[2.0, 0.0], [1.0, 0.0]], 2) == [0]


def test_the_median_rule_compares_the_best_return_with_mean_returns():
  # Means 2, 4, 6, 1: their lower median is 2. The last has had a return of 2, though its mean is 1.
  assert above_median([[1.0, 3.0], [4.0, 4.0], [5.0, 7.0], [2.0, 0.0]]) == [0, 1, 2, 3]
  assert above_median([[1.0, 3.0], [4.0, 4.0], [5.0, 7.0], [1.9, 0.0]]) == [0, 1, 2]
  assert above_median([[9.0, -math.inf], [1.0, 1.0], [2.0, 2.0]]) == [1, 2]  # it has failed


def runner(returns: dict[str, list[float]], log: list[str]) -> Callable[[Sequence[Trial]], bool]:
  """Return what stands in for `execute`: trials end with the returns given by setting, part by part."""

  def run(trials: Sequence[Trial]) -> bool:
    for trial in trials:
      if not trial.is_finished():
        log.append(f"{trial.setting[0]} {trial.part}")
        finish(trial, returns[trial.setting[0]].pop(0), iterations=int(trial.limits["max_iterations"]))
    return True

  return run


def test_settings_stop_by_their_returns_and_again_after_a_restart(tmp_path):
  words = [*TOY, "max_iterations=4", "ppo.gamma=0.1,0.2,0.3,0.4", f"folder={tmp_path}"]
  returns = {f"ppo.gamma=0.{digit}": [float(digit), float(-digit), 0.0] for digit in (1, 2, 3, 4)}
  groups = [[trial] for trial in sweep.plan(words)[1]]
  ends, log = parts(Prune.halving, 4, 5, 2), list[str]()

  def halve(histories: Sequence[Sequence[float]]) -> list[int]:
    return best(histories, 2)

  trials = prune_trials(groups, ends, halve, runner(returns, log))
  assert log[4:] == ["ppo.gamma=0.3 1/2", "ppo.gamma=0.4 1/2", "ppo.gamma=0.3 1"]
  assert [trial.part for trial in trials] == [Fraction(1, 4), Fraction(1, 4), Fraction(1), Fraction(1, 2)]
  again = list[str]()
  groups = [[trial] for trial in sweep.plan(words)[1]]
  assert prune_trials(groups, ends, halve, runner({}, again)) == trials
  assert again == []

  def stopped(_trials: Sequence[Trial]) -> bool:
    return False

  groups = [[trial] for trial in sweep.plan([*words, f"folder={tmp_path / 'other'}"])[1]]
  assert {trial.part for trial in prune_trials(groups, ends, halve, stopped)} == {Fraction(1, 4)}


def test_a_sweep_prunes_and_resumes_its_runs(tmp_path, monkeypatch, capfd):
  monkeypatch.setattr(sweep, "start", train_here)
  folder = tmp_path / "sweep"
  words = ["max_iterations=4", "prune=halving", "reduction=2", "ppo.gamma=0.9,0.5", "jobs=2"]
  words += [f"folder={folder}"]
  sweep.main([f"task={toy.__file__}", *words])
  assert "2 runs in" in capfd.readouterr().out
  with (folder / "results.csv").open() as file:
    assert sorted(float(row["trained"]) for row in csv.DictReader(file)) == [0.5, 1.0]
  summaries = [json.loads(path.read_text()) for path in folder.glob("*/*/summary.json")]
  assert sorted(summary["iterations"] for summary in summaries) == [2, 4]
