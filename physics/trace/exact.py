"""Warp kernel of programs with the numbers of IEEE 754, at any addresses of a CPU's memory."""

import os
import sys
from typing import Any

import warp as wp

from physics.trace.kernel import load_kernel, start_warp

FLAGS = "-march=native -ffp-contract=off"  # a product and a sum stay two operations
PATIENCE = 5  # of a process that builds: it has a quarter of a core that it shares


def exact_kernel(source: str) -> wp.Kernel:
  """Return a CPU's kernel of programs with IEEE 754's numbers, from the text of `exact_source`.

  Arguments: first, the first lane group of the launch; the number of a program; the addresses of all cells.
  """
  start_warp()
  x: Any = wp.array(dtype=wp.int64)

  def body(env: int, program: int, cells: x): ...  # type: ignore  # noqa: ANN202, PGH003 (Warp's own types)

  native = wp.func_native(source)(body)

  def run(first: int, program: int, cells: x):  # type: ignore  # noqa: ANN202, PGH003
    native(wp.tid() + first, program, cells)  # type: ignore[operator]

  return wp.kernel(
    run, module="unique", module_options={"enable_backward": False, "cpu_compiler_flags": FLAGS}
  )


def build_input() -> None:
  """Build the kernel of a text that is this process's input, at low priority, into the cache it is given."""
  if hasattr(os, "nice"):
    os.nice(PATIENCE)
  start_warp()
  wp.config.kernel_cache_dir = sys.argv[1]
  load_kernel(exact_kernel(sys.stdin.read()), wp.get_device("cpu"), 1)
