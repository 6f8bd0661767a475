import warnings

import pytest

from benchmarks import soak
from benchmarks.soak import Sample
from tests.gpurobot import toy


def test_memory_and_speed_of_each_tenth():
  samples = [Sample(t, 2.0 * t, 100.0 + t // 10, 50 * t) for t in range(101)]
  found = soak.tenths(samples)
  assert len(found) == 10
  assert [speed for _, speed in found] == pytest.approx([25.0] * 10)
  assert found[4][0] == pytest.approx(104 + 1 / 11)


def test_a_training_is_watched_and_its_warnings_are_kept(monkeypatch):
  step = soak.WatchedLog.step

  def warn(log):
    warnings.warn("look here", stacklevel=1)
    log.warn(["and here"])
    step(log)

  monkeypatch.setattr(soak.WatchedLog, "step", warn)
  samples, told = soak.measure([f"task={toy.__file__}", "max_iterations=3"])
  assert samples[0].steps == 64 * 8
  assert samples[0].memory > 100
  assert (told.count("look here"), told.count("and here")) == (3, 3)
