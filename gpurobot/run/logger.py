"""Loggers of a run, and guards that keep their errors away from the training."""

import contextlib
import json
import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from gpurobot.run.files import read_json, rewrite

LOG = logging.getLogger(__name__)
SEEN = "seen"  # group of the policy's images
PATIENCE = 60.0  # longest wait for a remote logger at the end of training [s]
PATIENCE_FAILED = 10.0  # the same where its last write has failed: the server may be gone [s]
MOST_WAITING = 1000  # calls that wait for a remote logger; further ones fail


class NoAnswer(Exception):
  """A server that does not answer in time when a logger starts."""


class Logger:
  """Destination of a run's log; a subclass overrides the methods with content that it keeps."""

  name: ClassVar[str]  # in warnings
  remote: ClassVar[bool] = False  # whether it may wait for a network

  def write_config(self, values: Mapping[str, Any]) -> None:
    """Write the settings by key, at the start."""

  def write(self, row: Mapping[str, float]) -> None:
    """Write a row of the log, by column."""

  def write_video(self, path: Path, steps: int) -> None:
    """Write a video of the policy after `steps` environment steps, an animated GIF."""

  def write_images(self, pictures: Mapping[str, Tensor], steps: int) -> None:
    """Write the policy's images after `steps` environment steps: pictures [height, width, 3] by name."""

  def write_checkpoints(self, paths: Sequence[Path]) -> None:
    """Write the last checkpoint of the run, and its best policy if there is one."""

  def close(self, failed: bool) -> None:
    """Write the rest; `failed`: an error has ended the training."""


class Guard:
  """Caller of a remote logger: errors are counted and reported once, and training goes on."""

  def __init__(self, name: str, errors: type[Exception] = OSError) -> None:
    """Catch `errors` of writing to `name`."""
    self._name, self._errors = name, errors
    self._count = 0  # errors so far

  def call(self, write: Callable[..., None], *content: Any) -> list[str]:
    """Write the content; return warnings."""
    try:
      write(*content)
    except self._errors as error:
      return self._note(" ".join(str(error).split()) or type(error).__name__)
    return []

  def _note(self, reason: str) -> list[str]:
    self._count += 1
    message = f"{self._name} could not be written ({reason}); training goes on, but {self._name} has a gap"
    return [message] if self._count == 1 else []

  def close(self, write: Callable[..., None], *content: Any) -> list[str]:
    """Write the last content; return warnings, with the number of errors if there were several."""
    return self.call(write, *content) + self._total()

  def _total(self) -> list[str]:
    return [f"{self._name}: {self._count} writes failed"] if self._count > 1 else []


class ThreadGuard(Guard):
  """Guard that calls in a thread of its own, in order, so that training never waits for a network."""

  def __init__(self, name: str) -> None:
    """Catch all errors, as the libraries of remote loggers raise many types."""
    super().__init__(name, Exception)
    self._calls: queue.Queue[tuple[Callable[..., None], tuple[Any, ...]] | None] = queue.Queue(MOST_WAITING)
    self._warnings: queue.SimpleQueue[str] = queue.SimpleQueue()
    self._failing, self._began = False, math.inf  # whether the last write failed; start of the present one
    self._thread = threading.Thread(target=self._work, name=name, daemon=True)
    self._thread.start()

  def _work(self) -> None:
    while (job := self._calls.get()) is not None:
      before, self._began = self._count, time.monotonic()
      for warning in super().call(job[0], *job[1]):
        self._warnings.put(warning)
      self._failing = self._count > before

  def call(self, write: Callable[..., None], *content: Any) -> list[str]:
    """Let the thread write the content; return warnings about earlier content."""
    try:
      self._calls.put_nowait((write, content))
    except queue.Full:
      return [*self._pending(), *self._note(f"{MOST_WAITING} writes wait already")]
    return self._pending()

  def _pending(self) -> list[str]:
    return [self._warnings.get() for _ in range(self._warnings.qsize())]

  def close(self, write: Callable[..., None], *content: Any) -> list[str]:
    """Wait until all is written, at most PATIENCE, PATIENCE_FAILED if it fails or hangs; return warnings."""
    start, waited = time.monotonic(), 0.0
    stuck = not self._calls.empty() and start - self._began > PATIENCE_FAILED
    left: list[tuple[Callable[..., None], tuple[Any, ...]] | None] = [(write, content), None]
    while self._thread.is_alive() and waited < (PATIENCE_FAILED if self._failing or stuck else PATIENCE):
      with contextlib.suppress(queue.Full):
        while left:
          self._calls.put_nowait(left[0])
          left.pop(0)
      self._thread.join(0.05)
      before, waited = waited, time.monotonic() - start
      if before < 1 <= waited:
        LOG.info("%s: sending the rest, %.0f s at most", self._name, PATIENCE)
    late = [f"{self._name} did not take everything within {waited:.2g} s"] if self._thread.is_alive() else []
    return self._pending() + self._total() + late


class Loggers:
  """All loggers of a run, each with its guard; every method returns warnings."""

  def __init__(self, loggers: Sequence[Logger]) -> None:
    """Guard the loggers."""
    self._guards = [
      (logger, ThreadGuard(logger.name) if logger.remote else Guard(logger.name)) for logger in loggers
    ]

  def write_config(self, values: Mapping[str, Any]) -> list[str]:
    """Write the settings by key."""
    return self._each(lambda logger: logger.write_config(values))

  def write(self, row: Mapping[str, float]) -> list[str]:
    """Write a row of the log."""
    return self._each(lambda logger: logger.write(row))

  def write_video(self, path: Path, steps: int) -> list[str]:
    """Write a video of the policy."""
    return self._each(lambda logger: logger.write_video(path, steps))

  def write_images(self, pictures: Mapping[str, Tensor], steps: int) -> list[str]:
    """Write the policy's images."""
    return self._each(lambda logger: logger.write_images(pictures, steps))

  def write_checkpoints(self, paths: Sequence[Path]) -> list[str]:
    """Write the last checkpoint and the best policy, as far as they exist."""
    return self._each(lambda logger: logger.write_checkpoints(paths)) if paths else []

  def close(self, failed: bool = False) -> list[str]:
    """Write the rest, once: a second call does nothing."""
    guards, self._guards = self._guards, []
    return [warning for logger, guard in guards for warning in guard.close(logger.close, failed)]

  def _each(self, call: Callable[[Logger], None]) -> list[str]:
    return [warning for logger, guard in self._guards for warning in guard.call(call, logger)]


class RemoteRuns:
  """Names of a run at a remote logger, by project: a resumed run goes on there."""

  def __init__(self, path: Path) -> None:
    """Keep the names in a JSON file."""
    self._path = path

  def find(self, project: str) -> str | None:
    """Return the name of the run in a project, if there is one."""
    return self._read().get(project)

  def keep(self, project: str, run: str) -> None:
    """Keep the name of the run in a project."""
    with rewrite(self._path) as file:
      file.write(json.dumps(self._read() | {project: run}).encode())

  def _read(self) -> dict[str, str]:
    return read_json(self._path) if self._path.exists() else {}
