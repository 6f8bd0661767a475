"""Run folder: its lock, for one training at a time, and protection of other runs' checkpoints."""

import errno
import itertools
import os
import socket
import warnings
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from gpurobot.device.distributed import World
from gpurobot.run import checkpoint
from gpurobot.settings.config import ConfigError, TrainConfig

try:
  import fcntl
except ImportError:  # Windows
  fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


def claim(config: TrainConfig, world: World) -> tuple[Path, ExitStack]:
  """Create the run folder if it is missing; return it and its lock, which is released when it is closed.

  Raises ConfigError on every rank if another training is running there or has left a checkpoint there, or if
  the folder is not writable.
  """
  folder = Path(world.broadcast_object(config.run_dir or str(new(config)))).absolute()
  problem, lock = "", ExitStack()
  if world.main:
    try:
      lock.enter_context(_lock(folder))
      _check(config, folder)
    except ConfigError as error:
      problem = str(error)
  if problem := world.broadcast_object(problem):
    lock.close()  # not only when the error is forgotten: in a notebook the process goes on
    raise ConfigError(problem)
  return folder, lock


def shown(folder: Path) -> Path:
  """Return a folder as people write it: relative if it lies below the working directory."""
  return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


def make_folder(key: str, folder: Path) -> None:
  """Create the folder that a setting names if it is missing; raise ConfigError if it cannot be made."""
  try:
    folder.mkdir(parents=True, exist_ok=True)
  except OSError as error:
    raise ConfigError(f"{key}={folder} cannot be made: {error.strerror}") from error


def new(config: TrainConfig) -> Path:
  """Return a folder that does not exist, named by task, time and seed."""
  name = f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{config.seed}"
  names = itertools.chain([name], (f"{name}-{count}" for count in itertools.count(2)))
  place = Path("runs") / Path(config.task).stem
  return next(place / name for name in names if not (place / name).exists())


def newest_run(place: str) -> str:
  """Return the run below a folder that has saved last; `place` itself if it is a run, or no run is below."""
  if checkpoint.exists(place):
    return place
  saved = [path for name in (checkpoint.NAME, checkpoint.PREVIOUS) for path in Path(place).rglob(name)]
  return str(max(saved, key=lambda path: path.stat().st_mtime).parent) if saved else place


def _lock(folder: Path) -> BinaryIO:
  """Return the lock of a folder; the system releases it however this process ends."""
  try:
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / LOCK).open("a+b")
  except OSError as error:
    raise ConfigError(f"run_dir={shown(folder)} is not writable ({error.strerror})") from error
  try:
    _take(file)
  except BlockingIOError:
    file.seek(0)
    owner = file.read().decode()
    raise ConfigError(
      f"another training ({owner}) is running in '{shown(folder)}'; wait for it, or choose another run_dir"
    ) from None
  except OSError as error:  # a file system or a system without locks
    warnings.warn(
      f"'{folder}' cannot be locked ({error.strerror}); do not start a second run there", stacklevel=2
    )
  file.truncate(0)
  file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
  file.flush()
  return file


def owner(folder: Path) -> str:
  """Return which process trains in a folder, in words; "" if none does, or where nothing can be locked."""
  try:
    with (folder / LOCK).open("r+b") as file:  # NFS locks what may be written
      try:
        _take(file)
      except BlockingIOError:
        return file.read().decode() or "a process"
  except OSError:
    pass
  return ""


def _take(file: BinaryIO) -> None:
  """Lock an open file; raise BlockingIOError if another process has locked it, OSError if nothing can."""
  if fcntl is None:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
  fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _check(config: TrainConfig, folder: Path) -> None:
  """Raise ConfigError if this training would overwrite the checkpoint of another one."""
  if not checkpoint.exists(folder):
    return
  if config.resume is None or not checkpoint.find(config.resume).parent.samefile(folder):
    raise ConfigError(
      f"'{shown(folder)}' holds the checkpoint of another training; write resume={shown(folder)} to continue "
      "that, or choose another run_dir"
    )
