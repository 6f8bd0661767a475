"""The folder of a run: one training at a time writes there, and none over the checkpoint of another."""

import fcntl
import os
import socket
import warnings
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from gpurobot.config import ConfigError, TrainConfig
from gpurobot.device.distributed import World
from gpurobot.run import checkpoint

LOCK = ".lock"


def claim(config: TrainConfig, world: World) -> tuple[Path, ExitStack]:
  """Return the run folder, made where it is missing, and its lock: closing it lets others train there.

  Raises ConfigError on every rank where another training is at work there, has left its checkpoint there, or
  the folder cannot be written to.
  """
  name = f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{config.seed}"
  folder = Path(world.broadcast_object(config.run_dir or f"runs/{Path(config.task).stem}/{name}"))
  problem, lock = "", ExitStack()
  if world.main:
    try:
      lock.enter_context(_lock(folder))
      _check(config, folder)
    except ConfigError as error:
      problem = str(error)
  if problem := world.broadcast_object(problem):
    raise ConfigError(problem)
  return folder, lock


def _lock(folder: Path) -> BinaryIO:
  """Return the lock of a folder, which the system gives back however this process ends."""
  try:
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / LOCK).open("a+b")
  except OSError as error:
    raise ConfigError(f"run_dir={folder} cannot be written to ({error.strerror})") from error
  try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    file.seek(0)
    owner = file.read().decode()
    raise ConfigError(f"{owner} trains in '{folder}': wait for its end, or choose another run_dir") from None
  except OSError as error:  # a file system without locks
    warnings.warn(f"'{folder}' cannot be locked ({error.strerror}): start no second run there", stacklevel=2)
  file.truncate(0)
  file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
  file.flush()
  return file


def _check(config: TrainConfig, folder: Path) -> None:
  """Raise ConfigError where a training that starts or comes from elsewhere would write over a checkpoint."""
  if not checkpoint.exists(folder):
    return
  if config.resume is None or not checkpoint.find(config.resume).parent.samefile(folder):
    raise ConfigError(
      f"'{folder}' holds the checkpoint of another training: resume={folder} continues that, another run_dir "
      "leaves it alone"
    )
