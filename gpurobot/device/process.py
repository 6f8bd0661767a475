"""Process settings for torch on a CPU: memory that stays, threads that do not spin."""

import ctypes
import os

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # mallopt's names for its parameters
_HUGE_PAGES = 14  # madvise's name for its advice
_PAGE = 4096  # [bytes]
_LARGEST = 32 * 2**20  # size up to which tensors lie on the heap: mallopt takes no more [bytes]
_HEAP = 2**30  # address space that the heap grows by; what no tensor uses takes no memory [bytes]


def limit_spinning() -> None:
  """Let idle OpenMP threads sleep after a fraction of a millisecond; torch reads this when it is loaded.

  By default they spin for many, on the cores that the physics' threads or other programs wait for: where
  other programs kept all cores busy, an update took ten times as long. On idle cores the limit costs 7 %.
  """
  os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def keep_memory() -> None:
  """Keep the memory of freed tensors, in large pages; the C library would return it to the kernel.

  Every tensor would fault its memory in anew: an update at Ant's sizes takes 0.70 s of processor time instead
  of 0.80 s. Large pages, where Linux grants them, spare it the look-up of most addresses: another 8 %.
  """
  library = ctypes.CDLL(None)
  if not hasattr(library, "mallopt"):  # glibc's alone
    return
  library.mallopt(_MMAP_THRESHOLD, _LARGEST)
  library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
  library.mallopt(_TOP_PAD, _HEAP)
  library.malloc.restype = ctypes.c_void_p
  piece = library.malloc(ctypes.c_size_t(_LARGEST // 2))  # the heap has grown when it has room for this
  library.free(ctypes.c_void_p(piece))
  if piece is not None:
    start = piece // _PAGE * _PAGE
    library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(_HEAP), _HUGE_PAGES)
