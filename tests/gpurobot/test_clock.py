import time

import pytest
import torch

from gpurobot.clock import Clock


def test_the_clock_books_every_moment_once():
  clock = Clock(torch.device("cpu"))
  start = time.perf_counter()
  for part in ("a", "b", "a"):
    time.sleep(0.01)
    clock.mark(part)
  passed = time.perf_counter() - start
  seconds = clock.take()
  assert seconds["a"] > seconds["b"] >= 0.01
  assert sum(seconds.values()) == pytest.approx(passed, abs=1e-3)
  assert clock.take() == {}
