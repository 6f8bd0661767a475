"""What the process around torch needs on a CPU: memory that stays, threads that do not spin."""

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt's names for its parameters


def limit_spinning() -> None:
  """Let idle OpenMP threads sleep after a fraction of a millisecond; torch reads this when it is loaded.

  By default they spin for many, on the cores that the physics' threads or other programs wait for: where
  other programs kept all cores busy, an update took ten times as long. On idle cores the limit costs 7 %.
  """
  os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def keep_memory() -> None:
  """Keep the memory of freed tensors; the C library would return it, and every tensor fault it in anew.

  An update at Ant's sizes takes 0.70 s of processor time instead of 0.80 s.
  """
  mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's alone
  if mallopt is not None:
    mallopt(_MMAP_THRESHOLD, 32 * 2**20)  # the largest it takes
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)
