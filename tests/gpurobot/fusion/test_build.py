"""A thread builds functions, and a tape takes them when it has ended."""

import subprocess
import sys
import time

import pytest
import torch

from gpurobot.device import tape
from gpurobot.device.tape import Tape
from gpurobot.fusion.schedule import Fusion
from physics.trace import exact
from physics.trace.kernel import kernel_cache
from tests.gpurobot.fusion.fused import ROWS

FUSE, BUILD = 10, 20


def make(monkeypatch) -> tuple[Tape, torch.Tensor]:
  """Return a tape of a text that no earlier test has built, and what it changes."""
  source = exact.exact_source
  unique = f"// {time.time_ns()}\n"
  monkeypatch.setattr(exact, "exact_source", lambda *words: source(*words) + unique)
  monkeypatch.setattr(tape, "FUSE", FUSE)
  monkeypatch.setattr(tape, "BUILD", BUILD)
  return again(torch.ones(ROWS, 3))


def again(x: torch.Tensor) -> tuple[Tape, torch.Tensor]:
  taped = Tape(lambda: x.mul_(0.5).neg_().add_(1))
  taped.fusion = Fusion(ROWS)
  return taped, x


def wait(taped: Tape) -> None:
  """Call a tape up to the first multiple of BUILD after the build has ended."""
  for _ in range(BUILD):
    taped()
  assert not taped.fused
  taped.fusion._build.exception()
  for _ in range(BUILD):
    taped()


def test_a_thread_builds_while_operations_are_replayed(monkeypatch):
  taped, x = make(monkeypatch)
  wait(taped)
  assert taped.fused
  expected = torch.ones(ROWS, 3)
  for _ in range(2 * BUILD):
    expected.mul_(0.5).neg_().add_(1)
  assert torch.equal(x, expected)


def test_functions_that_an_earlier_run_has_built_come_soon(monkeypatch):
  taped, _ = make(monkeypatch)
  wait(taped)
  later, _ = again(torch.ones(ROWS, 3))
  for _ in range(FUSE):
    later()
  assert later.fused


def test_other_functions_are_built_after_the_first(monkeypatch):
  taped, _ = make(monkeypatch)
  wait(taped)
  source = exact.exact_source
  monkeypatch.setattr(exact, "exact_source", lambda *words: source(*words) + "// another\n")
  later, _ = again(torch.ones(ROWS, 3))
  later.fusion = taped.fusion
  for _ in range(2 * BUILD):
    later()
  wait(later)
  assert later.fused


@pytest.mark.filterwarnings("ignore:'<lambda>' is not fused")
def test_a_text_that_is_no_cpp_is_said(monkeypatch, recwarn):
  taped, _ = make(monkeypatch)
  source = f"no {time.time_ns()}"
  monkeypatch.setattr(exact, "exact_source", lambda *_: source)
  wait(taped)
  assert not taped.fused
  assert taped.fusion is None
  assert taped.source
  (warning,) = [str(own.message) for own in recwarn if own.category is UserWarning]
  assert "is not fused: CPU kernel build failed" in warning


def test_a_process_that_ends_waits_for_its_build():
  code = (
    "from gpurobot.fusion.schedule import Fusion; from physics.trace.exact import exact_kernel\n"
    "from physics.trace.trace import Program, Scalar\n"
    "program, fusion = Program(), Fusion(16)\n"
    f"program.keep(0, {time.time_ns()}, 4, program.fetch(Scalar, 0, 0, 4))\n"
    "kernel = exact_kernel([program])\n"
    "assert not fusion.ready(kernel) and not fusion.ready(kernel)\n"
    "print(kernel.module.get_module_identifier(1))"
  )
  done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
  assert [file.suffix for file in (kernel_cache() / done.stdout.strip()).glob("*.o")]
