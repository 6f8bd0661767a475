"""Build of a tape's functions on a CPU, by another process beside the training."""

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from gpurobot.device import process, threads
from gpurobot.device.calls import Call, Fused
from gpurobot.device.tape import Tape
from gpurobot.fusion.schedule import fused
from physics.trace.kernel import CPU_LANES, is_built, kernel_cache


def fuse(taped: object, num_envs: int, builds: bool = True) -> None:
  """Let a tape fuse operations on environments, if these are whole lane groups, and on one thread.

  builds: whether this rank builds functions, of the ranks on a machine.
  """
  if isinstance(taped, Tape) and num_envs % CPU_LANES == 0 and threads.enough(num_envs) == 1:
    taped.fusion = Builder(num_envs, builds)


class Builder:
  """Fusion of calls for a number of rows by a kernel in Warp's cache; a `calls.Fusion`."""

  def __init__(self, rows: int, builds: bool = True) -> None:
    """Fuse for so many rows; builds: whether this process starts builds, or another one does."""
    self.rows, self._builds = rows, builds
    self._kernel: Any = None  # that is awaited
    self._source = ""
    self._process: subprocess.Popen[bytes] | None = None  # which builds it

  def __call__(
    self, calls: Sequence[Call], fresh: set[int], given: Sequence[Tensor], build: bool
  ) -> Fused | None:
    """Fuse calls."""
    return fused(self.rows, calls, fresh, given, partial(self.ready, build))

  def built(self) -> bool:
    """Return whether a build that was started has ended."""
    if self._kernel is None:
      return False
    return self._process.poll() is not None if self._process else is_built(self._kernel, 1)

  def ready(self, build: bool, kernel: Any, source: str) -> bool:
    """Return whether a kernel is built; start to `build` it if not. Raise RuntimeError if that failed."""
    ended = self.built()
    if ended:
      self._kernel = None
    if is_built(kernel, 1):
      return True
    if ended and source == self._source:
      self._errors.seek(0)
      raise RuntimeError("".join(self._errors.readlines()[-1:]).strip() or "the process left no kernel")
    if build:
      self._kernel, self._source = kernel, source
      if self._builds:
        self._start(source)
    return False

  def _start(self, source: str) -> None:
    code = "from physics.trace import exact; exact.build_input()"
    command, environment = process.python("-c", code, str(kernel_cache()))
    self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (the process writes it)
    with tempfile.TemporaryFile("w+") as text:
      text.write(source)
      text.seek(0)
      self._process = subprocess.Popen(
        command, env=environment, stdin=text, stdout=subprocess.DEVNULL, stderr=self._errors
      )
    atexit.register(_stop, self._process)  # it would go on for seconds after a short training


def _stop(started: subprocess.Popen[bytes]) -> None:
  """End a process that builds, and remove its leftovers in the cache."""
  started.kill()
  started.wait()
  for folder in kernel_cache().glob(f"*_p{started.pid}_t*"):
    shutil.rmtree(folder, ignore_errors=True)
