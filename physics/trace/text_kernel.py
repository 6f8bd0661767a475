"""Warp kernel of C++ texts on a CPU: functions of blocks of environments, which are compiled together."""

import atexit
import functools
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from physics.trace.kernel import is_built, kernel_cache, load_kernel, start_warp

FLAGS = "-march=native -ffp-contract=off"  # a product and a sum stay two operations, as in torch
PATIENCE = 5  # of the process that compiles: it has a quarter of a core that it shares
ERRORS = "errors.txt"  # its messages
NOT_BUILT = "operations of a step stay torch's: their functions were not built"
LOG = logging.getLogger(__name__)
Array = NDArray[np.int64]
Command = Callable[..., tuple[list[str], dict[str, str]]]


class TextKernel:
  """C++ functions of a block's index and arrays of 64-bit integers, given by their bodies."""

  def __init__(self, preamble: str, bodies: Sequence[str]) -> None:
    """Take the bodies of functions of `block`, `base`, `place` and `number`; compile nothing yet."""
    start_warp()
    self._texts = preamble, bodies
    functions = [
      f"auto f{i} = [&]() __attribute__((noinline)) {{\n{own}\n}};" for i, own in enumerate(bodies)
    ]
    choice = " ".join(f"case {i}: f{i}(); break;" for i in range(len(bodies)))
    arrays = " ".join(
      f"long long* const {own} = (long long*){own}_.data;" for own in ("base", "place", "number")
    )
    x: Any = wp.array(dtype=wp.int64)

    def body(block: int, function: int, base_: x, place_: x, number_: x): ...  # type: ignore  # noqa: ANN202, PGH003 (Warp's own types)

    text = "\n".join([arrays, preamble, *functions, f"switch (function) {{ {choice} }}"])
    native = wp.func_native(text)(body)

    def run(function: int, base_: x, place_: x, number_: x):  # type: ignore  # noqa: ANN202, PGH003
      native(wp.tid(), function, base_, place_, number_)

    options = {"enable_backward": False, "cpu_compiler_flags": FLAGS}
    self._kernel = wp.kernel(run, module="unique", module_options=options)

  @property
  def built(self) -> bool:
    """Whether they are compiled, by this process or an earlier one."""
    return is_built(self._kernel, 1)

  def load(self) -> None:
    """Load them, or compile them."""
    load_kernel(self._kernel, wp.get_device("cpu"), 1)

  def build(self, python: Command) -> Callable[[], bool]:
    """Start to compile them in another process, of low priority; return a check of whether it has ended.

    python: returns the command and the environment of a Python process with the given arguments.
    """
    try:
      folder = tempfile.TemporaryDirectory(prefix="gpurobot-text-")
      process = self._start(Path(folder.name), python)
    except OSError as error:  # no room on the disk, or no process
      LOG.warning("%s (%s)", NOT_BUILT, error)
      return lambda: True
    stop = functools.partial(_stop, process)
    atexit.register(stop)  # it would go on for seconds after a short training

    def ended() -> bool:
      if process.poll() is None:
        return False
      if not self.built:
        said = Path(folder.name, ERRORS).read_text().splitlines()
        LOG.warning("%s (%s)", NOT_BUILT, "".join(said[-1:]))
      atexit.unregister(stop)
      folder.cleanup()
      return True

    return ended

  def _start(self, folder: Path, python: Command) -> subprocess.Popen[bytes]:
    """Start a process that compiles, with its input and its messages in a folder."""
    texts = folder / "texts.json"
    texts.write_text(json.dumps(self._texts))
    code = f"import {__name__} as own; own.build_file()"
    command, environment = python("-c", code, str(texts), str(kernel_cache()))
    with (folder / ERRORS).open("w") as errors:
      return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
      )

  def launch(self, index: int, blocks: int, arrays: Sequence[Array]) -> Callable[[], None]:
    """Return a callable that runs a function for each of `blocks` on arrays; their contents may change."""
    self.load()
    inputs = [index, *(wp.array(own, dtype=wp.int64, device="cpu", copy=False) for own in arrays)]
    command: wp.Launch = wp.launch(self._kernel, blocks, inputs=inputs, device="cpu", record_cmd=True)

    def launch(_kept: Any = (inputs, arrays)) -> None:  # their memory
      command.launch()

    return launch


def _stop(process: subprocess.Popen[bytes]) -> None:
  """End a process that compiles, and remove its leftovers in the cache."""
  process.kill()
  process.wait()
  for folder in kernel_cache().glob(f"*_p{process.pid}_t*"):
    shutil.rmtree(folder, ignore_errors=True)


def build_file() -> None:
  """Compile the texts of a file into a folder of kernels, both arguments of this process."""
  if hasattr(os, "nice"):
    os.nice(PATIENCE)
  start_warp()
  texts, wp.config.kernel_cache_dir = sys.argv[1:]
  TextKernel(*json.loads(Path(texts).read_text())).load()
