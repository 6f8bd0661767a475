"""Loggers that fail, and one that is slow: training goes on, and hears of it once."""

import threading
import time

import pytest

from gpurobot.run import logger
from gpurobot.run.logger import Guard, Logger, Loggers, RemoteRuns, ThreadGuard


class Notes(Logger):
  """A logger in memory."""

  name = "notes"

  def __init__(self):
    self.rows, self.closed = [], []

  def write(self, row):
    self.rows.append(row)

  def close(self, failed):
    self.closed.append(failed)


class RemoteNotes(Notes):
  remote = True

  def write(self, row):
    if row.get("bad"):
      raise RuntimeError("no\nnetwork")
    super().write(row)


def fail(reason):
  raise OSError(28, reason)


def test_an_error_is_told_once_and_counted():
  guard = Guard("notes")
  told = "notes could not be written ([Errno 28] full); training goes on, but notes has a gap"
  assert [guard.call(fail, "full") for _ in range(3)] == [[told], [], []]
  assert guard.close(list) == ["notes: 3 writes failed"]
  single = Guard("notes")
  assert len(single.call(fail, "full")) == 1
  assert single.close(list) == []


def test_a_fault_of_the_program_is_no_warning():
  with pytest.raises(ZeroDivisionError):
    Guard("notes").call(lambda: 1 / 0)


def test_each_logger_gets_what_it_has_a_use_for(tmp_path):
  loggers = Loggers([notes := Notes(), remote := RemoteNotes()])
  assert loggers.write_config({"seed": 0}) == []
  assert loggers.write({"steps": 1}) == loggers.write({"steps": 2}) == []
  assert loggers.write_video(tmp_path / "video.gif", 2) == []
  assert loggers.write_checkpoints([tmp_path / "a.pt"]) == []
  assert loggers.close() == loggers.close(failed=True) == []  # they are closed once
  assert notes.rows == remote.rows == [{"steps": 1}, {"steps": 2}]
  assert notes.closed == remote.closed == [False]


def test_any_error_of_a_remote_logger_is_a_warning_and_the_next_row_is_written():
  loggers = Loggers([remote := RemoteNotes()])
  warnings = [*loggers.write({"bad": True}), *loggers.write({"bad": True}), *loggers.write({"steps": 3})]
  warnings += loggers.close()
  assert warnings == [
    "notes could not be written (no network); training goes on, but notes has a gap",
    "notes: 2 writes failed",
  ]
  assert remote.rows == [{"steps": 3}]


def test_nobody_waits_for_a_slow_logger(monkeypatch):
  monkeypatch.setattr(logger, "MOST_WAITING", 2)
  monkeypatch.setattr(logger, "PATIENCE", 0.01)
  began, go = threading.Event(), threading.Event()
  guard = ThreadGuard("notes")
  guard.call(lambda: (began.set(), go.wait()))
  began.wait()
  warnings = [guard.call(int) for _ in range(4)]
  assert warnings[:2] == [[], []]
  assert "2 writes wait already" in warnings[2][0]
  total, late = guard.close(int)
  assert total == "notes: 2 writes failed"
  assert late.startswith("notes did not take everything within ")
  go.set()


def test_a_server_that_has_failed_is_not_waited_for_long(monkeypatch):
  monkeypatch.setattr(logger, "PATIENCE_FAILED", 0.01)
  failed, go = threading.Event(), threading.Event()
  guard = ThreadGuard("notes")
  guard.call(fail, "gone")
  guard.call(lambda: (failed.set(), go.wait()))
  failed.wait()
  first, late = guard.close(int)
  assert first.startswith("notes could not be written ([Errno 28] gone)")
  assert late.startswith("notes did not take everything within ")
  go.set()


def test_a_server_that_hangs_is_not_waited_for_long(monkeypatch, caplog):
  monkeypatch.setattr(logger, "PATIENCE_FAILED", 1.5)
  caplog.set_level("INFO")
  began, go = threading.Event(), threading.Event()
  guard = ThreadGuard("notes")
  guard.call(lambda: (began.set(), go.wait()))
  guard.call(int)
  began.wait()
  time.sleep(1.6)
  assert guard.close(int) == ["notes did not take everything within 1.5 s"]
  assert caplog.messages == ["notes: sending the rest, 60 s at most"]
  go.set()


def test_the_last_content_is_written_before_the_end():
  guard, written = ThreadGuard("notes"), []
  for number in range(100):
    guard.call(written.append, number)
  assert guard.close(written.append, "last") == []
  assert written == [*range(100), "last"]


def test_a_run_is_found_again_by_its_project(tmp_path):
  runs = RemoteRuns(tmp_path / "wandb.json")
  assert runs.find("ants") is None
  runs.keep("ants", "a1")
  runs.keep("dogs", "d1")
  assert [RemoteRuns(tmp_path / "wandb.json").find(name) for name in ("ants", "dogs")] == ["a1", "d1"]
