"""Worker process that no task can end or hold up for others: one that crashes or takes long is replaced."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any
from unittest.mock import patch

STARTING = threading.Lock()


class UnfinishedError(Exception):
  """A task ended its process, or was ended with it; the text says how."""


class Worker:
  """A process that runs one task at a time, each for `limit` seconds of its processor time.

  A process of its own, which many tasks share, since the imports of the engine take longer than most of them.
  Where the system has no timer of processor time (Windows), tasks have no limit.
  """

  def __init__(self, limit: float) -> None:
    self.limit = limit
    self._process: Any = None

  def run(self, task: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a module's function; raise UnfinishedError if it crashes or takes too long."""
    if self._process is None:
      self._start()
    try:
      self._tasks.send((task, arguments))
      is_done, result = self._tasks.recv()
    except (EOFError, ConnectionError):  # the latter where the process has not read the task
      self._process.join()
      status, self._process = self._process.exitcode, None
      raise UnfinishedError(self._end(status)) from None
    if not is_done:
      raise UnfinishedError(result)
    return result

  def stop(self) -> None:
    """End the process."""
    if self._process is not None:
      self._tasks.close()
      self._process.join()
      self._process = None

  def _start(self) -> None:
    context = multiprocessing.get_context("spawn")
    self._tasks, theirs = context.Pipe()
    self._process = context.Process(target=_serve, args=(theirs, self.limit), daemon=True)
    # Keep the working directory off the search path; one at a time, as threads share the environment.
    with STARTING, patch.dict(os.environ, PYTHONSAFEPATH="1"):
      self._process.start()
    theirs.close()  # so that the end of the process ends the connection

  def _end(self, status: int) -> str:
    if status == -getattr(signal, "SIGPROF", 0):
      return f"took more than {self.limit:g} s of processor time"
    return f"ended with status {status}"


def _serve(tasks: Connection, limit: float) -> None:
  """Run tasks until the connection ends. The timer's signal ends the process, also inside of native code."""
  set_timer = getattr(signal, "setitimer", lambda *_: None)
  timer = getattr(signal, "ITIMER_PROF", None)
  while True:
    try:
      task, arguments = tasks.recv()
    except EOFError:
      return
    set_timer(timer, limit)
    try:
      answer = True, task(*arguments)
    except Exception as error:  # the survey reports any error that a file causes, and goes on
      answer = False, f"{type(error).__name__}: {' '.join(str(error).split())}"
    set_timer(timer, 0)
    tasks.send(answer)
