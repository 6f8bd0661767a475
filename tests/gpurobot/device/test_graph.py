"""Graphs on a pretended GPU: what runs on which stream, what is recorded, what a failure leaves."""

import contextlib
from types import SimpleNamespace

import pytest
import torch

from gpurobot.device.graph import Graph, GraphRecorder

ERROR = "operation not permitted when stream is capturing"


class Gpu:
  """Stands for torch.cuda: what is called while it records is not done, but replayed later.

  As in torch, ending a capture that something spoiled fails, and leaves the stream as it is.
  """

  def __init__(self):
    self.stream, self.recording, self.spoiled = "main", None, False
    self.pools, self.modes, self.waits = [], [], []
    self.recording_to = None  # the pool of a recording that has not ended
    self.default_generators = [Generator("intact")]

  def work(self, function):
    if self.recording is None:
      function()
    else:
      self.recording.work.append(function)

  def Stream(self, _device):  # noqa: N802 (torch's name)
    return SimpleNamespace(device=SimpleNamespace(index=0), name="own", wait_stream=self.waits.append)

  def current_stream(self, _device):
    return SimpleNamespace(name=self.stream, wait_stream=self.waits.append)

  @contextlib.contextmanager
  def use(self, stream):
    before, self.stream = self.stream, stream.name
    try:
      yield
    finally:
      self.stream = before

  @contextlib.contextmanager
  def graph(self, graph, pool, stream, capture_error_mode):
    if self.recording_to is pool:
      raise RuntimeError("already recording to this pool")
    self.recording_to = pool
    self.pools.append(pool)
    self.modes.append(capture_error_mode)
    assert self.stream == stream.name == "own"
    self.recording, self.spoiled = graph, False
    self.default_generators[0].state = "recording"
    try:
      yield
    finally:
      self.recording = None
      if self.spoiled:
        self.stream = "lost"
        raise RuntimeError(ERROR)
      self.default_generators[0].state, self.recording_to = "intact", None

  def leave(self, _device, pool):
    if self.recording_to is not pool:
      raise RuntimeError("not recording to this pool")
    self.recording_to = None


class Generator:
  def __init__(self, state):
    self.state = state

  def clone_state(self):
    return Generator(self.state)

  def graphsafe_set_state(self, other):
    self.state = other.state


class Recorded:
  def __init__(self):
    self.work, self.replays = [], 0

  def replay(self):
    self.replays += 1
    for work in self.work:
      work()


@pytest.fixture
def gpu(monkeypatch):
  gpu = Gpu()
  replaced = ("Stream", "current_stream", "graph", "default_generators")
  for name in replaced:
    monkeypatch.setattr(torch.cuda, name, getattr(gpu, name))
  monkeypatch.setattr(torch.cuda, "stream", gpu.use)
  monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", gpu.leave)
  monkeypatch.setattr(torch.cuda, "CUDAGraph", Recorded)
  monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
  return gpu


@pytest.fixture
def count(gpu):
  """A kernel that counts its runs; a call after `spoil` does what no graph can hold."""

  def add():
    add.streams.append(gpu.stream)
    gpu.work(lambda: add.runs.append(1))
    gpu.spoiled = add.spoil

  add.streams, add.runs, add.spoil = [], [], False
  return add


def test_without_a_recorder_every_call_is_a_call(count):
  graph = Graph(count, None)
  for _ in range(4):
    graph()
  assert len(count.runs) == 4
  assert count.streams == ["main"] * 4
  assert not graph.recorded


def test_the_third_call_is_recorded_where_it_warmed_up_and_every_call_does_the_work_once(count, gpu):
  graph = Graph(count, GraphRecorder(torch.device("cuda")))
  for done in range(1, 6):
    graph()
    assert len(count.runs) == done
    assert graph.recorded == (done >= 3)
  assert count.streams == ["own"] * 3
  assert graph._graph.replays == 3
  # The work of each warm-up lies between what was there before it and what comes after.
  assert [stream.name for stream in gpu.waits] == ["main", "own"] * 2
  assert gpu.stream == "main"


def test_all_graphs_share_one_pool_and_other_threads_spoil_none(count, gpu):
  recorder = GraphRecorder(torch.device("cuda"))
  for graph in (Graph(count, recorder), Graph(count, recorder)):
    for _ in range(3):
      graph()
  assert len(gpu.pools) == 2
  assert gpu.pools[0] is gpu.pools[1]
  assert gpu.modes == ["thread_local"] * 2


def test_a_count_that_a_graph_would_freeze_is_told_and_called(count):
  def step() -> None:
    count()
    task.calls += 1

  task = SimpleNamespace(calls=0)
  graph = Graph(step, GraphRecorder(torch.device("cuda")), env=task)
  graph(), graph()
  with pytest.warns(UserWarning, match=r"^no CUDA graph of 'step' \(rank 0: env.calls changes from call"):
    graph()
  for done in (4, 5):
    graph()
    assert len(count.runs) == done
  assert not graph.recorded


def test_what_cannot_be_recorded_is_said_once_and_goes_on_with_torch_as_it_was(count, gpu):
  graph = Graph(count, GraphRecorder(torch.device("cuda")))
  graph(), graph()
  count.spoil = True
  with pytest.warns(UserWarning, match=rf"^no CUDA graph of 'add' \(rank 0: {ERROR}\); write graphs=off"):
    graph()
  assert gpu.stream == "main"
  assert gpu.default_generators[0].state == "intact"
  for done in (4, 5):
    graph()
    assert len(count.runs) == done
  assert not graph.recorded


def test_after_a_failed_recording_others_share_its_pool(count, gpu):
  recorder = GraphRecorder(torch.device("cuda"))
  failed, other = Graph(count, recorder), Graph(count, recorder)
  for graph in (failed, other):
    graph(), graph()
  count.spoil = True
  with pytest.warns(UserWarning, match="^no CUDA graph"):
    failed()
  count.spoil = False
  other()
  assert other.recorded
  assert gpu.pools[0] is gpu.pools[1]


def test_an_error_of_the_function_counts_as_a_failure(gpu):
  calls = []

  def fail():
    calls.append(1)
    if gpu.recording:
      raise RuntimeError

  graph = Graph(fail, GraphRecorder(torch.device("cuda")))
  graph(), graph()
  with pytest.warns(UserWarning, match=r"\(rank 0: RuntimeError\)"):
    graph()
  graph()
  assert len(calls) == 5


def test_where_one_rank_fails_none_has_a_graph(count):
  told = []

  def gather(failure):
    told.append(failure)
    return [failure, "out of memory"]

  graph = Graph(count, GraphRecorder(torch.device("cuda"), gather))
  graph(), graph()
  with pytest.warns(UserWarning, match=r"^no CUDA graph of 'add' \(rank 1: out of memory\)"):
    graph()
  graph()
  assert told == [""]  # asked once, and this rank had not failed
  assert len(count.runs) == 4
  assert not graph.recorded
