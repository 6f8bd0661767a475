"""Atomic replacement of files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PART = ".part"  # suffix of a file that is not complete yet
OLD = ".old"  # suffix of a file during its renaming


@contextmanager
def rewrite(path: Path, previous: Path | None = None) -> Iterator[BinaryIO]:
  """Open a file that replaces `path` when it is complete: a reader finds either the old or the new one.

  The data reach the disk (fsync) before the renaming, so a power cut leaves the old file. The old file
  becomes `previous`. The former `previous` is kept until then, as the old file may be damaged.
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
  if not hasattr(os, "O_DIRECTORY"):  # Windows opens no directory
    return
  directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
  try:
    os.fsync(directory)
  finally:
    os.close(directory)
