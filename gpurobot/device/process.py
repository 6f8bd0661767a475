"""Process: its cores and memory, how Ctrl-C ends it early, and the Python processes that it starts."""

import contextlib
import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

PLACE = str(Path(__file__).parents[2])  # folder of gpurobot and the packages beside it
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # mallopt's names for its parameters
_HUGE_PAGES = 14  # madvise's name for its advice
_PAGE = 4096  # [bytes]
_LARGEST = 32 * 2**20  # size up to which tensors are on the heap, the maximum of mallopt [bytes]
_DEFAULT_THRESHOLD = 128 * 2**10  # glibc's own [bytes]
_HEAP = 2**30  # address space by which the heap grows; unused pages take no memory [bytes]


def limit_spinning() -> None:
  """Make idle OpenMP threads sleep after a fraction of a millisecond; torch reads this when it is loaded.

  By default they spin for many milliseconds on cores that the physics or other programs need: with all cores
  busy by other programs an update took ten times as long. On idle cores the limit costs 7 %.
  """
  os.environ.setdefault("GOMP_SPINCOUNT", "10000")


def pause_collection() -> None:
  """Pause Python's garbage collector until `resume_collection`, as a program imports what stays.

  Looking through the modules of torch again and again, and once more at the end of the program, takes 2.8 of
  the 8.1 s of a process with one iteration of Cartpole.
  """
  gc.disable()


def resume_collection() -> None:
  """Resume a paused garbage collector; it ignores all objects that exist by now."""
  if not gc.isenabled():
    gc.freeze()
    gc.enable()


@contextlib.contextmanager
def collection_paused() -> Iterator[None]:
  """Pause Python's garbage collector in the block, unless it is paused already."""
  before = gc.isenabled()
  pause_collection()
  try:
    yield
  finally:
    if before:
      resume_collection()


def end_at_interrupt() -> None:
  """Make Ctrl-C end the process at once with status 130, as a half-done import cannot clean up."""
  if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
    signal.signal(signal.SIGINT, _end)


def _end(*_: object) -> None:
  os._exit(128 + signal.SIGINT)


def raise_at_interrupt() -> None:
  """Make Ctrl-C raise KeyboardInterrupt again."""
  if signal.getsignal(signal.SIGINT) is _end:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def python(*words: str, places: Iterable[str] = (), **variables: str) -> tuple[list[str], dict[str, str]]:
  """Return the command and the environment of a Python process of gpurobot's, with more variables.

  It looks for modules beside gpurobot, in PYTHONPATH and in `places`. It never looks in the
  working directory, which may be somebody else's run folder; nor do the processes that it starts.
  """
  given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
  path = os.pathsep.join(filter(None, [PLACE, *given, *places]))
  own = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
  return [sys.executable, "-P", *words], os.environ | own | variables


def core_indices() -> set[int]:
  """Return the cores that this process may use, or all where the system does not say."""
  return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def usable_cores() -> int:
  """Return the number of cores that this process may use, or of all where the system does not say."""
  return len(core_indices())


def keep_memory() -> None:
  """Keep the memory of freed tensors, in huge pages, instead of returning it to the kernel.

  Otherwise every new tensor causes page faults: an update at Ant's sizes takes 0.80 s of processor time, and
  0.70 s with this. Huge pages, if Linux grants them, save most TLB misses: another 8 %.
  """
  library = _glibc()
  if library is None:
    return
  library.mallopt(_MMAP_THRESHOLD, _LARGEST)
  library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
  library.mallopt(_TOP_PAD, _HEAP)
  library.malloc.restype = ctypes.c_void_p
  piece = library.malloc(ctypes.c_size_t(_LARGEST // 2))  # makes the heap grow
  library.free(ctypes.c_void_p(piece))
  if piece is not None:
    start = piece // _PAGE * _PAGE
    library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(_HEAP), _HUGE_PAGES)


def release_memory() -> None:
  """Undo `keep_memory`: return free memory to the kernel, now and from now on."""
  library = _glibc()
  if library is None:
    return
  library.mallopt(_MMAP_THRESHOLD, _DEFAULT_THRESHOLD)
  library.mallopt(_TRIM_THRESHOLD, _DEFAULT_THRESHOLD)
  library.mallopt(_TOP_PAD, 0)
  library.malloc_trim(ctypes.c_size_t(0))


def _glibc() -> ctypes.CDLL | None:
  """Return the C library if it is glibc, which has an allocator that can be set."""
  library = ctypes.CDLL(None) if os.name == "posix" else None
  return library if hasattr(library, "mallopt") else None
