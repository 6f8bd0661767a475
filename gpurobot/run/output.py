"""Standard output that may fail: a full disk, a reader that left, or a closed terminal ends no training."""

import io
import os
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from typing import Any, TextIO

from gpurobot.run.interrupt import UNREAD

# ASCII's and Latin-1's but for tab and newline, those that turn the direction of writing, and halves of
# characters, which stand for bytes that are no text
_ENDS = ((0, 9), (11, 32), (127, 160), (0x202A, 0x202F), (0x2066, 0x206A), (0xD800, 0xE000))
CONTROL = {code: ascii(chr(code))[1:-1] for ends in _ENDS for code in range(*ends)}


class Output(io.TextIOBase):
  """Text stream over another one; text that cannot be written is dropped, never kept for a second attempt."""

  def __init__(self, stream: TextIO, on_failure: Callable[[OSError], None] = lambda _: None) -> None:
    """Write to `stream`; the first failure is passed to `on_failure`."""
    self._stream, self._on_failure = stream, on_failure
    self._failed = False

  @property
  def encoding(self) -> str:  # type: ignore[override]
    """The encoding of the stream, which decides what characters a progress bar is made of."""
    return getattr(self._stream, "encoding", None) or "utf-8"

  def isatty(self) -> bool:
    """Return whether the stream is a terminal."""
    return self._stream.isatty()

  def fileno(self) -> int:
    """Return the stream's file descriptor."""
    return self._stream.fileno()

  def write(self, text: str) -> int:
    """Write text at once; return its length, also if it was dropped."""
    try:
      self._stream.write(text)
      self._stream.flush()
    except OSError as error:
      self._drop()
      if not self._failed:
        self._failed = True
        self._on_failure(error)
    return len(text)

  def _drop(self) -> None:
    """Empty the stream's buffer: Python would write it at its end, fail again, and exit with status 120."""
    descriptor = self._stream.fileno()
    kept, null = os.dup(descriptor), os.open(os.devnull, os.O_WRONLY)
    try:
      os.dup2(null, descriptor)
      with suppress(OSError):
        self._stream.flush()
    finally:
      os.dup2(kept, descriptor)
      os.close(kept)
      os.close(null)


@contextmanager
def until_unread() -> Iterator[None]:
  """End the program silently once the reader of standard output has left, as after `| head`.

  Its status is then the one of a program that the system has ended for that reason.
  """
  try:
    try:
      yield
    finally:
      if sys.stdout is not None:
        sys.stdout.flush()  # here, not where Python ends: a disk may be full, too
  except BrokenPipeError:
    if not _is_unread():
      raise  # of another pipe
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still has to write
    raise SystemExit(128 + UNREAD) from None


def _is_unread() -> bool:
  """Return whether standard output is a pipe without a reader; False where the system does not say."""
  if not hasattr(select, "poll"):  # Windows
    return False
  pipe = select.poll()
  pipe.register(sys.stdout, 0)
  return bool(pipe.poll(0))


def printable(text: str) -> str:
  """Return text with its control characters escaped as in Python's literals."""
  return text.translate(CONTROL)


class Plain:
  """Text stream over another one that writes `printable` text."""

  def __init__(self, stream: TextIO) -> None:
    self._stream = stream

  def write(self, text: str) -> int:
    """Write text; return its length."""
    return self._stream.write(printable(text))

  def __getattr__(self, name: str) -> Any:
    return getattr(self._stream, name)


def tell(text: str) -> None:
  """Write a line on standard error, if that is possible."""
  if sys.stderr is not None:
    Output(sys.stderr).write(f"{printable(text)}\n")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
  """Return the lines of a table with aligned columns; rows may lack cells at their ends."""
  widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
  return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
