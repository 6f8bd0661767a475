"""A worker: what a task returns, and how one that crashes or takes long is told."""

import os
import signal
import time

import pytest

from benchmarks.parity.worker import UnfinishedError, Worker


def add(a, b):
  return a + b


def fail():
  raise KeyError("gone")


def spin():
  while time.process_time() < 1e6:
    pass


def leave(tasks, _limit):
  """Serve nobody, as a process does whose main module cannot be imported."""
  tasks.poll(None)


@pytest.fixture
def worker():
  worker = Worker(0.2)
  yield worker
  worker.stop()


def test_no_task_ends_or_holds_up_the_next(worker):
  before = dict(os.environ)
  assert worker.run(add, 1, 2) == 3
  assert os.environ == before
  with pytest.raises(UnfinishedError, match=r"^KeyError: 'gone'$"):
    worker.run(fail)
  with pytest.raises(UnfinishedError, match=f"^ended with status -{int(signal.SIGABRT)}$"):
    worker.run(os.abort)
  assert worker.run(add, 2, 2) == 4


def test_a_process_that_ends_before_it_reads_its_task_is_told(worker, monkeypatch):
  with monkeypatch.context() as patch:
    patch.setattr("benchmarks.parity.worker._serve", leave)
    with pytest.raises(UnfinishedError, match=r"^ended with status 0$"):
      worker.run(add, 1, 2)
  assert worker.run(add, 2, 2) == 4
  os.kill(worker._process.pid, signal.SIGTERM)
  worker._process.join()
  with pytest.raises(UnfinishedError, match=f"^ended with status -{int(signal.SIGTERM)}$"):
    worker.run(add, 1, 2)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timer of processor time")
def test_the_limit_counts_processor_time_of_one_task(worker):
  assert worker.run(time.sleep, 0.5) is None
  with pytest.raises(UnfinishedError, match=r"^took more than 0\.2 s of processor time$"):
    worker.run(spin)
  assert worker.run(add, 1, 1) == 2
