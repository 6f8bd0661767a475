import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from gpurobot.device import usage
from gpurobot.device.usage import Usage

CPU = torch.device("cpu")


def test_memory_is_the_most_that_the_process_has_held():
  status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
  peak = float(status["VmHWM"].removesuffix("kB")) * 1024e-9  # [GB]
  assert Usage(CPU).read()["memory/process"] == pytest.approx(peak, rel=0.05)


def test_utilisation_is_the_share_of_the_cores_that_works(monkeypatch):
  monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
  passed, worked = iter([1.0, 3.0, 4.0]), iter([5.0, 6.0, 6.0])
  clocks = SimpleNamespace(monotonic=lambda: next(passed), process_time=lambda: next(worked))
  monkeypatch.setattr(usage, "time", clocks)
  used = Usage(CPU)
  assert used.read()["utilisation"] == 0.25
  assert used.read()["utilisation"] == 0.0


@pytest.mark.gpu
def test_a_gpu_has_memory_of_its_own():
  usage = Usage(torch.device("cuda"))
  before = usage.read()["memory/device"]
  block = torch.ones(10**8, device="cuda")
  assert usage.read()["memory/device"] >= before + 0.3
  assert len(block) > 0
