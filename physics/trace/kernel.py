"""Warp kernels of traced programs."""

import atexit
import contextlib
import dataclasses
import errno
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import warp as wp

from physics.trace.emit import native_source
from physics.trace.trace import Program

CPU_LANES = 16  # environments side by side in one CPU thread; with 8 a biped is 10 % slower, Humanoid 19 %
CPU_FLAGS = (
  "-march=native -ffp-contract=fast -mllvm=-inline-threshold=9000 -mllvm=-inline-cold-callsite-threshold=3000"
  " -mllvm=-slp-recursion-max-depth=4"
  " -mllvm=-disable-post-ra"  # a second scheduling, which takes a tenth of the build and gains nothing
)
CHECKSUMS = "checksums.json"  # of the other files in a kernel's folder of Warp's cache, which Warp trusts
ROOM = 2**26  # free bytes that the build of a kernel asks for
LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class CudaBuild:
  """How kernels are built for CUDA."""

  block: int = 32  # threads; larger blocks leave multiprocessors idle at a few thousand environments
  unroll: bool = False  # let the compiler unroll loops: twice the instructions, 65,536 Ants 2 % faster
  in_step: bool = False  # let the warps of a block wait for each other, to fetch the code together


CUDA = CudaBuild()


def start_warp() -> None:
  """Initialise Warp silently: without a GPU, its library writes to stderr that there is none."""
  wp.config.log_level = wp.LOG_ERROR
  wp.config.cuda_output = "cubin"  # a driver newer than Warp's compiler would take tens of seconds for PTX
  try:
    _init_silently()
  except OSError as error:  # the cache's folder cannot be made
    _use_own_cache(error)
    _init_silently()
  cache = Path(wp.config.kernel_cache_dir)
  if cache.is_dir() and (foreign := _foreign(cache)):
    _use_own_cache(OSError(errno.EPERM, foreign))


@lru_cache
def _foreign(cache: Path) -> str:
  """Return why the kernels of a cache, which run as code of this process, may be others'; "" if not.

  Root trusts every owner, as a container has folders of its host. A group's members are trusted.
  """
  user, owner = os.getuid() if hasattr(os, "getuid") else 0, cache.stat().st_uid
  if user != 0 and owner not in {0, user}:
    return f"it is user {owner}'s"
  if not any(cache.iterdir()):  # new, with the umask's permissions
    cache.chmod(cache.stat().st_mode & ~stat.S_IWOTH)
  place = next((path for path in (cache, *cache.resolve().parents) if _is_open(path, path != cache)), None)
  return f"every user may write to {place}: chmod o-w" if place else ""


def _is_open(path: Path, holds: bool = False) -> bool:
  """Return whether every user may write to a file or folder; one that `holds` a cache may be as /tmp is."""
  mode = path.stat().st_mode
  return bool(mode & stat.S_IWOTH) and not (holds and mode & stat.S_ISVTX)


def _init_silently() -> None:
  stderr, sink = os.dup(2), os.open(os.devnull, os.O_WRONLY)
  try:
    os.dup2(sink, 2)
    wp.init()
  finally:
    os.dup2(stderr, 2)
    os.close(stderr)
    os.close(sink)
  with contextlib.suppress(AttributeError):  # private: where another Warp has none, each thread makes its own
    wp._src.context.runtime.get_clang_pch_dir = _header_folder  # type: ignore[attr-defined]


def _header_folder() -> str:
  """Return the folder of Warp's precompiled header, which Warp alone makes in every thread, in 2 s.

  Clang renames it to its place once it is whole, and refuses one that does not fit. Each user has their own.
  """
  header = Path(wp.__file__).with_name("native") / "builtin.h"
  user = os.getuid() if hasattr(os, "getuid") else 0
  key = hashlib.sha256(f"{user} {header} {header.stat().st_mtime_ns}".encode()).hexdigest()[:16]
  folder = Path(wp.config.kernel_cache_dir) / f"header-{key}"
  folder.mkdir(mode=0o700, exist_ok=True)
  return str(folder)


def _use_own_cache(error: OSError) -> None:
  """Keep kernels in a folder that goes with this process, and say why: the cache cannot be written."""
  folder = tempfile.mkdtemp(prefix="gpurobot-kernels-")
  atexit.register(shutil.rmtree, folder, ignore_errors=True)
  LOG.warning(
    "kernels cannot be kept in %s (%s): this process builds its own; let WARP_CACHE_PATH name another folder",
    wp.config.kernel_cache_dir,
    error.strerror,
  )
  wp.config.kernel_cache_dir = folder


def kernel_cache() -> Path:
  """Return the folder in which compiled kernels are kept."""
  start_warp()
  return Path(wp.config.kernel_cache_dir)


def lanes_on(device: str) -> int:
  """Return the number of environments that one thread of a device steps side by side."""
  return 1 if device.startswith("cuda") else CPU_LANES


def block_on(device: str) -> int:
  """Return the number of threads in a block of a launch on a device."""
  return CUDA.block if device.startswith("cuda") else 1


def padded(num_envs: int, device: str) -> int:
  """Return the number of environments in a device's memory: whole lane groups on a CPU, whole blocks on CUDA.

  Every row of a field then begins at the start of a cache line.
  """
  multiple = block_on(device) * lanes_on(device)
  return -(-num_envs // multiple) * multiple


@lru_cache(maxsize=8)
def build_kernel(program: Program, device: str) -> wp.Kernel:
  """Return the kernel of a traced step for "cpu" or "cuda", compiled at its first launch, then cached.

  Arguments: first, the first lane group of the launch; substeps, stride, integrate and the arrays state,
  control and parameters as `trace_step` declares them. This works without a GPU too, to compile a kernel
  ahead of time.
  """
  start_warp()
  x: Any = wp.array2d(dtype=wp.float32)

  def body(env: int, substeps: int, stride: int, integrate: int, state: x, control: x, parameters: x): ...  # type: ignore  # noqa: ANN202, PGH003, PLR0913, PLR0917 (Warp's own types)

  in_step = CUDA.in_step and device.startswith("cuda")
  native = wp.func_native(native_source(program, lanes_on(device), CUDA.unroll, in_step))(body)

  def step(first: int, substeps: int, stride: int, integrate: int, state: x, control: x, parameters: x):  # type: ignore  # noqa: ANN202, PGH003, PLR0913, PLR0917
    native(wp.tid() + first, substeps, stride, integrate, state, control, parameters)  # type: ignore[operator]

  options = {"enable_backward": False, "max_unroll": 0, "cpu_compiler_flags": CPU_FLAGS, "fast_math": True}
  if device.startswith("cuda"):
    return wp.kernel(
      step, module="unique", module_options=options, launch_bounds=CUDA.block, grid_stride=False
    )
  return wp.kernel(step, module="unique", module_options=options)


def load_kernel(kernel: wp.Kernel, device: wp.DeviceLike, block_dim: int) -> None:
  """Load a kernel from Warp's cache, or build it; a damaged one, or one open to every user, is built again.

  Where the cache cannot be written, as on a full disk, the process goes on with a cache of its own.
  """
  try:
    _load(kernel, device, block_dim)
  except OSError as error:
    _use_own_cache(error)
    _load(kernel, device, block_dim)


def _load(kernel: wp.Kernel, device: wp.DeviceLike, block_dim: int) -> None:
  folder = kernel_cache() / kernel.module.get_module_identifier(block_dim)
  known = _checksums(folder)
  for file in _binaries(folder):
    if known.get(file.name, _checksum(file)) != _checksum(file) or _is_open(folder) or _is_open(file):
      file.unlink(missing_ok=True)
  found = _binaries(folder)
  if not found:
    if shutil.disk_usage(kernel_cache()).free < ROOM:  # where the disk gets full LLVM ends the process
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
    LOG.info("building a kernel for %s: seconds to minutes; later runs reuse it", device)
  try:
    kernel.module.load(device, block_dim)
  except Exception:  # of Warp and of the files' readers
    if not found:
      raise
    for file in found:  # they are older than their checksums
      file.unlink(missing_ok=True)
    kernel.module.load(device, block_dim)
  now = {file.name: _checksum(file) for file in _binaries(folder)}
  if now != known:
    part = folder / f"{CHECKSUMS}.{os.getpid()}"
    with contextlib.suppress(OSError):  # a cache that others have written
      for path in (folder, *_binaries(folder)):  # whatever the umask is
        path.chmod(path.stat().st_mode & ~stat.S_IWOTH)
      part.write_text(json.dumps(now))
      part.replace(folder / CHECKSUMS)


def is_built(kernel: wp.Kernel, block_dim: int) -> bool:
  """Return whether Warp's cache has a kernel."""
  return bool(_binaries(kernel_cache() / kernel.module.get_module_identifier(block_dim)))


def _binaries(folder: Path) -> list[Path]:
  """Return the files of a kernel's folder that Warp loads."""
  return sorted(file for file in folder.glob("wp_*") if file.suffix not in {".cpp", ".cu"})


def _checksums(folder: Path) -> dict[str, str]:
  """Return the checksums of a kernel's folder by file; none where they cannot be read."""
  try:
    known = json.loads((folder / CHECKSUMS).read_text())
  except (OSError, ValueError):
    return {}
  return known if isinstance(known, dict) else {}


def _checksum(file: Path) -> str:
  return hashlib.sha256(file.read_bytes()).hexdigest()
