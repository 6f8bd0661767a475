"""Standard output that fails: the training loses nothing, and ends only if nobody reads it any more."""

import contextlib
import errno
import io
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn, TextIO

import pytest

import train
from gpurobot.device.distributed import World
from gpurobot.learn.ppo import PPO
from gpurobot.run import checkpoint
from gpurobot.run.output import Output, aligned
from gpurobot.shell import cli
from tests.gpurobot import toy

ROOT = Path(__file__).parents[3]
TOY = f"task={toy.__file__}"
pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


def full_disk() -> TextIO:
  return Path("/dev/full").open("w")


def left_pipe() -> TextIO:
  reader, writer = os.pipe()
  os.close(reader)
  return os.fdopen(writer, "w")


def closed_terminal() -> TextIO:
  main, terminal = pty.openpty()
  os.close(main)
  return os.fdopen(terminal, "w")


def run(folder: Path, *words: str) -> tuple[int, int, dict]:
  """Train three iterations; return status, iterations of the checkpoint, and summary."""
  status = train.main([TOY, f"run_dir={folder}", "log_every=1", "max_iterations=3", *words])
  summary = json.loads((folder / "summary.json").read_text())
  return status, checkpoint.read(folder)["learner"]["iteration"], summary


ENDINGS = {  # stdout: status, iterations, and the warning
  full_disk: (0, 3, "([Errno 28] No space left on device); training goes on"),
  closed_terminal: (0, 3, "([Errno 5] Input/output error); training goes on"),
  left_pipe: (141, 0, "([Errno 32] Broken pipe); training saves a checkpoint and ends"),
}


def help_text(stream: TextIO) -> NoReturn:
  """Write a text and end, as --help does."""
  stream.write("usage: ...\n")
  raise SystemExit(0)


@pytest.mark.parametrize("buffering", [-1, 1])
def test_a_program_whose_reader_has_left_ends_silently(buffering, monkeypatch):
  reader, writer = os.pipe()
  os.close(reader)
  with os.fdopen(writer, "w", buffering) as stream:
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(SystemExit) as end:
      train.main(["--help"])
  assert end.value.code == 141


def test_a_pipe_of_the_programs_own_that_breaks_is_an_error(monkeypatch, capsys):
  reader, writer = os.pipe()
  with os.fdopen(writer, "w") as stream, os.fdopen(reader):
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(SystemExit) as end, cli.user_errors([], World()), left_pipe() as other:
      help_text(other)
  assert end.value.code == 2
  assert capsys.readouterr().err == "error: [Errno 32] Broken pipe\n"


@pytest.mark.parametrize("module", ["tasks", "gpurobot", "gpurobot.shell.completion"])
def test_every_program_may_be_piped_to_head(module):
  with left_pipe() as stdout:
    command = [sys.executable, "-m", module]
    done = subprocess.run(command, cwd=ROOT, check=False, stdout=stdout, stderr=subprocess.PIPE, text=True)
  assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("stdout", ENDINGS)
def test_output_that_fails_ends_no_training(stdout, tmp_path, monkeypatch, capsys):
  status, iterations, reason = ENDINGS[stdout]
  with stdout() as stream, monkeypatch.context() as patch:
    patch.setattr(sys, "stdout", stream)
    ended, saved, summary = run(tmp_path)
    stream.flush()  # nothing is left that would fail at the end of the program
  assert (ended, saved, summary["iterations"]) == (status, iterations, iterations)
  assert summary["warnings"] == [f"standard output could not be written {reason}"]
  assert capsys.readouterr().err == f"warning: standard output could not be written {reason}\n"


def test_a_terminal_that_is_closed_saves_and_ends(tmp_path, monkeypatch):
  update = PPO.update

  def close_terminal(learner: PPO) -> None:
    update(learner)
    signal.raise_signal(signal.SIGHUP)

  signal.signal(signal.SIGHUP, signal.SIG_DFL)
  monkeypatch.setattr(PPO, "update", close_terminal)
  with closed_terminal() as stream:
    monkeypatch.setattr(sys, "stdout", stream)
    assert run(tmp_path)[:2] == (128 + signal.SIGHUP, 1)


@pytest.mark.parametrize("stdout", [contextlib.nullcontext, full_disk])
def test_a_program_without_standard_output_and_errors_trains(stdout, tmp_path, monkeypatch):
  with stdout() as stream, monkeypatch.context() as patch:
    patch.setattr(sys, "stdout", stream)
    patch.setattr(sys, "stderr", stream)
    assert run(tmp_path)[:2] == (0, 3)


def test_output_goes_on_when_there_is_space_again():
  class Disk(io.RawIOBase):
    full, held = True, b""

    def writable(self) -> bool:
      return True

    def fileno(self) -> int:
      return self.descriptor

    def write(self, data: bytes) -> int:
      if self.full:
        raise OSError(errno.ENOSPC, "No space left on device")
      self.held += bytes(data)
      return len(data)

  errors: list[OSError] = []
  disk = Disk()
  disk.descriptor = os.open(os.devnull, os.O_WRONLY)
  output = Output(io.TextIOWrapper(io.BufferedWriter(disk)), errors.append)
  output.write("lost ")
  output.write("lost too ")
  disk.full = False
  output.write("kept")
  assert [error.errno for error in errors] == [errno.ENOSPC]
  os.close(disk.descriptor)
  assert disk.held.endswith(b"kept")


def test_the_name_of_a_folder_is_printed_as_it_is(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  run(Path("a[red]b:smile:[/blue]{x}"))
  assert "\na[red]b:smile:[/blue]{x}: " in capsys.readouterr().out


def test_a_resumed_run_with_nothing_left_to_do_writes_no_row_and_no_warning(tmp_path):
  run(tmp_path, "log_every=10")
  before = (tmp_path / "metrics.csv").read_text()
  train.main([f"resume={tmp_path}", TOY, "max_iterations=3"])
  assert (tmp_path / "metrics.csv").read_text() == before
  assert json.loads((tmp_path / "summary.json").read_text())["warnings"] == []


def test_columns_are_aligned_and_rows_may_end_early():
  assert aligned([("a", "", "long"), ("bbb",), ("c", "", "d")]) == ["a      long", "bbb", "c      d"]
