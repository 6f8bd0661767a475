"""Words of benchmarks, whose mistakes end in one line, and the ratios that a failed run keeps."""

import sys
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as program
from benchmarks import report
from benchmarks.physics import speed


@pytest.mark.parametrize(
  ("run", "words", "message"),
  [
    (speed.run, ["antt"], "error: no 'antt' to measure; there are: ant, half_cheetah"),
    (program.main, ["kernels"], "error: no 'kernels' to measure; there are: physics.kernel_build"),
  ],
)
def test_mistakes_end_in_one_line(monkeypatch, run, words, message):
  monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
  with pytest.raises(SystemExit) as end:
    report.start(run)
  assert str(end.value).startswith(message)
  assert "\n" not in str(end.value)


def test_functions_are_called_in_turn_and_the_median_of_their_ratios_counts(monkeypatch):
  monkeypatch.setattr(report, "printed", {})
  calls = {"own": iter([0.0, 2.0, 8.0, 9.0]), "peer": iter([0.0, 1.0, 2.0, 9.0])}  # the first warm up
  report.compare("x", {name: lambda values=values: next(values) for name, values in calls.items()}, 3)
  assert report.printed == {"x.own": 8.0, "x.peer": 2.0, "x.ratio": 2.0}


def test_a_benchmark_that_fails_takes_no_ratio_with_it(monkeypatch):
  def fail():
    raise MemoryError

  kept = []
  parts = {
    "benchmarks.training.ppo": lambda: report.line("training.ratio", 2.0),
    "benchmarks.physics.speed": fail,
  }
  monkeypatch.setattr(report, "printed", {})
  monkeypatch.setattr(program.importlib, "import_module", lambda name: SimpleNamespace(run=parts[name]))
  monkeypatch.setattr(program.history, "keep", lambda figures: kept.append(dict(figures)))
  with pytest.raises(MemoryError):
    program.main(["training.ppo", "physics.speed"])
  assert kept == [{"training.ratio": 2.0}]
