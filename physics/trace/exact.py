"""Warp kernel of programs with the numbers of IEEE 754, at any addresses of a CPU's memory."""

from collections.abc import Sequence
from typing import Any

import warp as wp

from physics.trace.emit import exact_source
from physics.trace.kernel import CPU_LANES, start_warp
from physics.trace.trace import Program

FLAGS = "-march=native -ffp-contract=off"  # a product and a sum stay two operations


def build_exact(programs: Sequence[Program]) -> wp.Kernel:
  """Return a CPU's kernel of programs with IEEE 754's numbers, see `exact_source`.

  Arguments: first, the first lane group of the launch; the number of a program; the addresses of all cells.
  """
  start_warp()
  x: Any = wp.array(dtype=wp.int64)

  def body(env: int, program: int, cells: x): ...  # type: ignore  # noqa: ANN202, PGH003 (Warp's own types)

  native = wp.func_native(exact_source(programs, CPU_LANES))(body)

  def run(first: int, program: int, cells: x):  # type: ignore  # noqa: ANN202, PGH003
    native(wp.tid() + first, program, cells)  # type: ignore[operator]

  return wp.kernel(
    run, module="unique", module_options={"enable_backward": False, "cpu_compiler_flags": FLAGS}
  )
