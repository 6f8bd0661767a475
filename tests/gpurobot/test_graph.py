import contextlib

import pytest
import torch

from gpurobot.graph import Graph


class Recorder:
  """Stands for a CUDA graph: what is called while it records is not done, but replayed later."""

  recording = None

  def __init__(self):
    self.work, self.replays = [], 0

  def replay(self):
    self.replays += 1
    for work in self.work:
      work()


@contextlib.contextmanager
def record(graph):
  Recorder.recording = graph
  try:
    yield
  finally:
    Recorder.recording = None


@pytest.fixture
def count(monkeypatch):
  """A kernel that counts its runs, on a device with graphs."""
  monkeypatch.setattr(torch.cuda, "CUDAGraph", Recorder)
  monkeypatch.setattr(torch.cuda, "graph", record)
  runs = []
  calls = []

  def add():
    calls.append(1)
    work = lambda: runs.append(1)  # noqa: E731
    work() if Recorder.recording is None else Recorder.recording.work.append(work)

  add.runs, add.calls = runs, calls
  return add


def test_without_graphs_every_call_is_a_call(count):
  graph = Graph(count, enabled=False)
  for _ in range(3):
    graph()
  assert (len(count.calls), len(count.runs)) == (3, 3)


def test_the_third_call_is_recorded_and_every_call_does_the_work_once(count):
  graph = Graph(count, enabled=True)
  for done in range(1, 6):
    graph()
    assert len(count.runs) == done
  assert len(count.calls) == 3
  assert graph._graph.replays == 3


def test_what_cannot_be_recorded_is_said_once_and_goes_on(count, monkeypatch):
  @contextlib.contextmanager
  def fail(_graph):
    yield
    raise RuntimeError("operation not permitted when stream is capturing")

  monkeypatch.setattr(torch.cuda, "graph", fail)
  graph = Graph(count, enabled=True)
  graph(), graph()
  with pytest.warns(UserWarning, match=r"^no CUDA graph of 'add' \(operation not permitted"):
    graph()
  before = len(count.calls)
  graph()
  assert len(count.calls) == before + 1
