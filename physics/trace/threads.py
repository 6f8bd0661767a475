"""CPU threads that run kernels, with stacks that hold the arrays of their programs."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from physics.trace.emit import array_bytes
from physics.trace.kernel import CPU_LANES
from physics.trace.trace import Program

try:
  import resource
except ImportError:  # Windows
  resource = None  # type: ignore[assignment]

SPARE = 1 << 20  # [bytes] besides the arrays: spilled registers, Warp's functions (0.3 MB), the caller's
UNLIMITED = 2 << 20  # [bytes] that Linux gives to a thread under `ulimit -s unlimited`, except to the first
PAGE = 1 << 12  # [bytes] sizes of stacks are multiples of it


def usable_cores() -> int:
  """Return the number of cores that this process may use, or of all where the system does not say."""
  return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def stack_bytes(programs: Sequence[Program]) -> int:
  """Return the stack [bytes] that a CPU thread needs to run any of these programs."""
  return SPARE + -(-max(array_bytes(program, CPU_LANES) for program in programs) // PAGE) * PAGE


def fits_caller(stack: int) -> bool:
  """Return whether threads that are not started here have a stack of `stack` bytes: `ulimit -s`.

  False where the system does not report it.
  """
  limit = resource.getrlimit(resource.RLIMIT_STACK)[0] if resource else 0
  return stack <= (UNLIMITED if resource and limit == resource.RLIM_INFINITY else limit)


def start_threads(count: int, stack: int) -> ThreadPoolExecutor:
  """Return a pool of threads that run already, with a stack of `stack` bytes each, whatever `ulimit -s` says.

  A stack takes memory only where a kernel writes to it. OSError where the system refuses one.
  """
  pool, started = ThreadPoolExecutor(count), threading.Barrier(count)
  before = threading.stack_size(stack)
  try:
    waiting = [pool.submit(started.wait) for _ in range(count)]
    for thread in waiting:
      thread.result()
  except RuntimeError as error:  # "can't start new thread"
    started.abort()
    raise OSError(
      f"the arrays of this model's kernel need a stack of {stack:,} bytes in each of {count} CPU threads; "
      "the system has no room for them: take fewer threads, a smaller moving_capacity, or raise `ulimit -v`"
    ) from error
  finally:
    threading.stack_size(before)
  return pool
