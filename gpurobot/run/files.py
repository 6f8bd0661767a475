"""Files of a run: written as a whole or not at all, and JSON that may be damaged."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

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


def append(path: Path, data: bytes) -> None:
  """Append to a file; raise OSError if the disk is full, and the file stays unchanged then."""
  with path.open("ab", buffering=0) as file:
    size = file.tell()
    try:
      while data:
        data = data[file.write(data) :]
    except OSError:
      os.truncate(path, size)
      raise


def read_json(path: Path, **kinds: Any) -> dict[str, Any]:
  """Return the dictionary in a JSON file; raise ValueError if it is none, or lacks entries of these types."""
  try:
    content = json.loads(read_text(path))
    wrong = [key for key, kind in kinds.items() if not fits(content.get(key), kind)]
  except (AttributeError, RecursionError, ValueError) as error:
    raise ValueError(f"'{path}' is not JSON of a run ({error}): move it elsewhere") from error
  if wrong:
    raise damaged(path, wrong[0])
  return content


def read_text(path: Path) -> str:
  """Return the text of a file; raise OSError for a pipe, which would block, or a folder."""
  if path.exists() and not path.is_file():
    raise OSError(f"'{path}' is no file: move it elsewhere")
  return path.read_text()


def fits(value: Any, kind: Any) -> bool:
  """Return whether a value of JSON is of a type; its numbers are finite, and no truth values."""
  infinite = isinstance(value, int | float) and not abs(value) <= sys.float_info.max
  return isinstance(value, kind) and not (isinstance(value, bool) or infinite)


def damaged(path: Path, part: str) -> ValueError:
  """Return the error for a file with an invalid part."""
  return ValueError(f"'{path}' is damaged, as it has no valid {part}: move it elsewhere")
