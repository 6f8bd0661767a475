"""A step of a visit to a GPU: it goes on after a failure, ends in time, resumes, leaves nothing behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import gpu

PIECES = {
  "good": ["-c", "print('a figure: 1')"],
  "bad": ["-c", "raise SystemExit(3)"],
  "last": ["-c", "print('a figure: 2')"],
}
HANG = 600  # what takes so long hangs, however busy the machine is [s]
SLOW = "import pathlib, time; print('begun'); pathlib.Path({!r}).touch(); time.sleep(3600)"
# A program with a child of its own that writes both numbers to a file and never ends.
PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}")
time.sleep(3600)
"""


@pytest.fixture
def visit(monkeypatch, tmp_path):
  """Run a step of these pieces in a folder; return how many failed, and what the file says."""

  def run(pieces, before=()):
    monkeypatch.setattr(gpu, "STEPS", {"step": gpu.Step("what it tells", 1, pieces, before)})
    failed = gpu.run(["step=step", f"folder={tmp_path}"])
    return failed, (tmp_path / "step.txt").read_text()

  return run


def outcomes(text):
  return [row.split(",")[0] for row in text.splitlines() if row.startswith("== ")]


def test_every_piece_runs_and_its_output_is_kept_and_shown(visit, capfd):
  failed, text = visit(PIECES)
  assert failed == 1
  assert outcomes(text) == ["== good done", "== bad failed", "== last done"]
  assert [row for row in text.splitlines() if row.startswith("a figure")] == ["a figure: 1", "a figure: 2"]
  told = capfd.readouterr().out
  assert told.startswith(text)
  assert told.endswith("== step: nothing is left\n")


def test_the_same_command_goes_on_with_what_is_left(visit, monkeypatch, tmp_path, capfd):
  begun = tmp_path / "begun"
  late = lambda: time.monotonic() + (gpu.SECONDS if begun.exists() else 0)  # noqa: E731
  monkeypatch.setattr(gpu, "time", SimpleNamespace(monotonic=late, sleep=time.sleep))
  slow = ["-c", SLOW.format(str(begun))]
  failed, text = visit({"good": PIECES["good"], "slow": slow, "last": PIECES["last"]})
  begun.unlink()
  assert failed == 0
  assert outcomes(text) == ["== good done", "== slow cut"]
  assert "begun" in text
  assert capfd.readouterr().out.endswith("== step: left: slow, last; the same command goes on\n")
  _, text = visit({"good": PIECES["good"], "slow": ["-c", "print('quick now')"], "last": PIECES["last"]})
  assert outcomes(text)[2:] == ["== slow done", "== last done"]
  assert text.count("a figure: 1") == 1
  _, again = visit(PIECES)
  assert outcomes(again)[4:] == ["== bad failed"]


def wait_until(holds):
  end = time.monotonic() + HANG
  while not holds():
    assert time.monotonic() < end
    time.sleep(0.05)


def ended(pid):
  """Tell whether a process is gone, or a zombie that nobody has asked for."""
  try:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
  except (FileNotFoundError, ProcessLookupError):  # the latter where it ends while the file is read
    return True


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_cut_takes_along_all_that_it_started(tmp_path, how):
  numbers = tmp_path / "numbers"
  code = f"""
import signal
from benchmarks import gpu
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
gpu.STEPS = {{"step": gpu.Step("", 1, {{"parent": ["-c", {PARENT!r}, {str(numbers)!r}]}})}}
gpu.run(["step=step", "folder={tmp_path}"])
"""
  process = subprocess.Popen([sys.executable, "-c", code], cwd=gpu.ROOT, stderr=subprocess.DEVNULL)

  def pids():
    return numbers.read_text().split() if numbers.exists() else []

  try:
    wait_until(lambda: len(pids()) == 2)
    process.send_signal(how)
    process.wait(HANG)
    wait_until(lambda: all(map(ended, pids())))
  finally:
    for pid in map(int, pids()):
      with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    process.kill()


def test_every_piece_names_what_there_is():
  for step in gpu.STEPS.values():
    for words in step.pieces.values():
      for word in words:
        path = word.removeprefix("--ignore=")
        if path.startswith(("tests/", "train")):
          assert (gpu.ROOT / path).exists()
      if words[:1] == ["-m"] and words[1].startswith("benchmarks."):
        assert (gpu.ROOT / words[1].replace(".", "/")).with_suffix(".py").exists()
