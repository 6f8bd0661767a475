"""Files that are whole or not there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = ".part"  # ends the name of a file that is not whole yet
OLD = ".old"  # ends the name of a file on its way from one name to another


@contextmanager
def rewrite(path: Path, previous: Path | None = None) -> Iterator[BinaryIO]:
  """Open a file that takes the place of `path` when it is whole: a reader finds the old one or the new one.

  The data reach the disk (fsync) before the name does, so a power cut leaves the old file. It becomes
  `previous`, and what was called so stays until the new one has its name: the old one may be damaged.
  """
  part, old = (path.with_name(path.name + ending) for ending in (PART, OLD))
  try:
    with part.open("wb") as file:
      yield file
      file.flush()
      os.fsync(file.fileno())
    if previous and path.exists():
      path.replace(old)
    part.replace(path)
    if previous and old.exists():
      old.replace(previous)
  finally:
    part.unlink(missing_ok=True)
  directory = os.open(path.parent, os.O_RDONLY)
  try:
    os.fsync(directory)
  finally:
    os.close(directory)
