"""Words of benchmarks, whose mistakes end in one line, and the ratios that a failed run keeps."""

import runpy
import sys
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as program
from benchmarks import engine, report


@pytest.mark.parametrize(
  ("run", "words", "message"),
  [
    (engine.run, ["antt"], "error: no 'antt' to measure; there are: ant, half_cheetah"),
    (program.main, ["kernels"], "error: no 'kernels' to measure; there are: kernel, camera"),
  ],
)
def test_mistakes_end_in_one_line(monkeypatch, run, words, message):
  monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
  with pytest.raises(SystemExit) as end:
    report.start(run)
  assert str(end.value).startswith(message)
  assert "\n" not in str(end.value)


@pytest.mark.parametrize("name", ["kernel", "camera", "scaling"])
def test_a_benchmark_that_takes_no_words_ends_at_one(monkeypatch, name):
  monkeypatch.setattr(sys, "argv", ["benchmarks", "robot=ant"])
  monkeypatch.delenv("LOCAL_RANK", raising=False)
  with pytest.raises(SystemExit, match="error: 'robot=ant' has no meaning here: leave it out"):
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")


def test_a_benchmark_that_fails_takes_no_ratio_with_it(monkeypatch):
  def fail():
    raise MemoryError

  kept = []
  parts = {"benchmarks.kernel": lambda: report.line("kernel.ratio", 2.0), "benchmarks.engine": fail}
  monkeypatch.setattr(report, "printed", {})
  monkeypatch.setattr(program.importlib, "import_module", lambda name: SimpleNamespace(run=parts[name]))
  monkeypatch.setattr(program.history, "keep", lambda figures: kept.append(dict(figures)))
  with pytest.raises(MemoryError):
    program.main(["kernel", "engine"])
  assert kept == [{"kernel.ratio": 2.0}]
