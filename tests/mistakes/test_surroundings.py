"""Lacks of a newcomer's machine: room on a disk, folders to write to, the patience of its user."""

import errno
import os
import signal

import pytest

import train
from physics.trace import launcher
from tests.mistakes.told import SMALL, told

pytestmark = pytest.mark.usefixtures("keep_signal_handlers")


def ended(error: BaseException):
  """Return a function for the place of `load_kernel` that raises an error."""

  def load(*_: object) -> None:
    raise error

  return load


def test_a_disk_without_room_for_a_kernel_is_told_in_one_line(capsys, monkeypatch, tmp_path):
  full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/cache")
  monkeypatch.setattr(launcher, "load_kernel", ended(full))
  line = told(capsys, train.main, ["task=cartpole", *SMALL, "device=cpu", f"run_dir={tmp_path / 'run'}"])
  assert line.startswith("the disk is full: free some of it, or write elsewhere ([Errno 28] No space left")


def test_ctrl_c_while_a_kernel_is_built_ends_without_a_traceback(capsys, monkeypatch, tmp_path):
  monkeypatch.setattr(launcher, "load_kernel", ended(KeyboardInterrupt()))
  with pytest.raises(SystemExit) as end:
    train.main(["task=cartpole", *SMALL, "device=cpu", f"run_dir={tmp_path / 'run'}"])
  assert end.value.code == 128 + signal.SIGINT
  assert "Traceback" not in capsys.readouterr().err
