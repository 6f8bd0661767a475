import time

import pytest
import torch

from gpurobot.device.clock import Clock, shares


def test_every_moment_goes_to_the_part_that_began_last():
  start = time.perf_counter()
  clock = Clock(torch.device("cpu"))
  for part, pause in (("a", 0.02), ("b", 0.01), ("a", 0.02)):
    clock.begin(part)
    time.sleep(pause)
  seconds = clock.seconds()
  assert set(seconds) == {"other", "a", "b"}
  assert seconds["a"] >= 0.04
  assert seconds["b"] >= 0.01
  assert sum(seconds.values()) <= time.perf_counter() - start
  time.sleep(0.01)
  later = clock.seconds()
  assert later["a"] - seconds["a"] >= 0.01  # the time between two readings goes to the present part
  assert later["b"] == seconds["b"]


def test_shares_are_of_the_time_between_two_readings():
  assert shares({"a": 5.0}, {"a": 6.0, "b": 3.0}) == {"a": 0.25, "b": 0.75}


@pytest.mark.gpu
def test_on_a_gpu_the_work_counts_and_not_its_launch():
  clock = Clock(torch.device("cuda"))
  x = torch.ones(4096, 4096, device="cuda")
  clock.begin("products")
  for _ in range(50):
    torch.mm(x, x)
  clock.begin("rest")
  seconds = clock.seconds()
  assert seconds["products"] > 1e-3 > seconds["rest"]


@pytest.mark.gpu
def test_the_replay_of_a_graph_goes_to_the_part_begun_before():
  clock = Clock(torch.device("cuda"))
  x = torch.ones(1024, 1024, device="cuda")
  torch.mm(x, x)
  graph = torch.cuda.CUDAGraph()
  with torch.cuda.graph(graph):
    clock.begin("captured")
    torch.mm(x, x)
  clock.begin("replayed")
  graph.replay()
  seconds = clock.seconds()
  assert seconds["replayed"] > 0
  assert "captured" not in seconds


def test_nsight_systems_sees_the_parts_as_ranges_one_after_the_other(monkeypatch):
  seen = []
  monkeypatch.setattr(torch.cuda.nvtx, "range_push", lambda name: seen.append(f"begin {name}"))
  monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: seen.append("end"))
  clock = Clock(torch.device("cpu"))
  clock.begin("unseen")
  clock.nvtx = True
  for part in ("rollout", "update/values"):
    clock.begin(part)
  clock.nvtx = False
  clock.begin("unseen")
  assert seen == ["begin rollout", "end", "begin update/values", "end"]


def test_a_profiler_sees_the_parts_as_ranges_one_after_the_other():
  clock = Clock(torch.device("cpu"))
  with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    clock.begin("unseen")
    clock.ranges = True
    for part in ("a", "b"):
      clock.begin(part)
      torch.ones(3)
    clock.ranges = False
    clock.begin("unseen")
  found = [event for event in profiler.events() if event.is_user_annotation]
  assert [event.name for event in found] == ["a", "b"]
  assert found[0].time_range.end <= found[1].time_range.start
