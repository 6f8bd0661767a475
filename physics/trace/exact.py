"""Warp kernel of programs on numbers at any addresses of a CPU's memory, with the rounding of IEEE 754.

It is apart from other kernels, as Warp changes what it keeps of a file's kernels when it builds one.
"""

from collections.abc import Sequence
from typing import Any

import warp as wp

from physics.trace.emit import exact_source
from physics.trace.kernel import CPU_LANES, start_warp
from physics.trace.trace import Program

FLAGS = "-march=native -ffp-contract=off"  # a product and a sum stay two operations


def exact_kernel(programs: Sequence[Program]) -> wp.Kernel:
  """Return the kernel of programs.

  Arguments: first, the first lane group of the launch; the number of a program; addresses of memory.
  """
  start_warp()
  x: Any = wp.array(dtype=wp.int64)

  def body(env: int, program: int, memory: x): ...  # type: ignore  # noqa: ANN202, PGH003 (Warp's own types)

  native = wp.func_native(exact_source(programs, CPU_LANES))(body)

  def run(first: int, program: int, memory: x):  # type: ignore  # noqa: ANN202, PGH003
    native(wp.tid() + first, program, memory)  # type: ignore[operator]

  options = {"enable_backward": False, "cpu_compiler_flags": FLAGS}
  return wp.kernel(run, module="unique", module_options=options)
