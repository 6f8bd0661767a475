"""Another process builds functions, and a tape takes them when it has ended."""

import os
import subprocess
import sys
import time

import pytest
import torch

from gpurobot.device import tape
from gpurobot.device.tape import Tape
from gpurobot.fusion import build, schedule
from gpurobot.fusion.build import Builder
from tests.gpurobot.fusion.fused import ROWS

FUSE, BUILD = 10, 20


def make(monkeypatch, builds: bool = True) -> tuple[Tape, torch.Tensor]:
  """Return a tape of a text that no earlier test has built, and what it changes."""
  source = schedule.exact_source
  unique = f"// {time.time_ns()}\n"
  monkeypatch.setattr(schedule, "exact_source", lambda *words: source(*words) + unique)
  monkeypatch.setattr(tape, "FUSE", FUSE)
  monkeypatch.setattr(tape, "BUILD", BUILD)
  return again(torch.ones(ROWS, 3), builds)


def again(x: torch.Tensor, builds: bool = True) -> tuple[Tape, torch.Tensor]:
  taped = Tape(lambda: x.mul_(0.5).neg_().add_(1))
  taped.fusion = Builder(ROWS, builds)
  return taped, x


def wait(taped: Tape) -> None:
  """Call a tape up to the first multiple of FUSE after the build has ended."""
  for _ in range(BUILD):
    taped()
  assert not taped.fused
  while not taped.fusion.built():
    time.sleep(0.1)
  for _ in range(FUSE):
    taped()


def test_another_process_builds_while_operations_are_replayed(monkeypatch):
  (taped, x), other = make(monkeypatch), again(torch.ones(ROWS, 3), builds=False)[0]
  for _ in range(BUILD):
    other()
  assert not other.fusion.built()
  wait(taped)
  assert taped.fused
  expected = torch.ones(ROWS, 3)
  for _ in range(BUILD + FUSE):
    expected.mul_(0.5).neg_().add_(1)
  assert torch.equal(x, expected)
  for _ in range(FUSE):  # of another rank
    other()
  assert other.fused


def test_functions_that_an_earlier_run_has_built_come_soon(monkeypatch):
  taped, _ = make(monkeypatch)
  wait(taped)
  later, _ = again(torch.ones(ROWS, 3))
  for _ in range(FUSE):
    later()
  assert later.fused


def failed(recwarn, taped: Tape) -> str:
  """Return the warning of a tape that fuses no more."""
  assert not taped.fused
  assert taped.fusion is None
  assert taped.source
  (warning,) = [str(own.message) for own in recwarn if own.category is UserWarning]
  return warning


@pytest.mark.filterwarnings("ignore:'<lambda>' is not fused")
def test_a_text_that_is_no_cpp_is_said(monkeypatch, recwarn):
  taped, _ = make(monkeypatch)
  monkeypatch.setattr(schedule, "exact_source", lambda *_: f"no {time.time_ns()}")
  source = schedule.exact_source()
  monkeypatch.setattr(schedule, "exact_source", lambda *_: source)
  wait(taped)
  assert "is not fused: " in failed(recwarn, taped)


@pytest.mark.filterwarnings("ignore:'<lambda>' is not fused")
def test_a_process_that_cannot_start_is_said(monkeypatch, recwarn):
  def fail(*_: object, **__: object) -> None:
    raise OSError("no more processes")

  taped, _ = make(monkeypatch)
  monkeypatch.setattr(build.subprocess, "Popen", fail)
  for _ in range(BUILD):
    taped()
  assert "no more processes" in failed(recwarn, taped)


def test_a_process_that_ends_leaves_no_build_behind():
  code = (
    "from gpurobot.fusion.build import Builder; from physics.trace.exact import exact_kernel; import time\n"
    "source = f'int x = {time.time_ns()}ll;'\n"
    "builder = Builder(16)\n"
    "builder.ready(True, exact_kernel(source), source)\n"
    "print(builder._process.pid)"
  )
  done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
  with pytest.raises(ProcessLookupError):
    os.kill(int(done.stdout), 0)
