"""The CSV log of a run, metrics.csv: whole lines of numbers under the names of their columns."""

import csv
import io
import os
from pathlib import Path
from typing import Any

from gpurobot.run.files import rewrite

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
  """Return the rows as texts by column; a line that a crash or a full disk cut short does not count."""
  whole, newline, _ = path.read_text().rpartition("\n") if path.exists() else ("", "", "")
  return list(csv.DictReader(io.StringIO(whole + newline)))


def cut(path: Path, steps: int) -> list[Row]:
  """Drop the rows after so many steps, and a line that was cut short; return those that stay."""
  rows = [row for row in read(path) if int(row["steps"]) <= steps]
  if path.exists():
    with rewrite(path) as file:
      file.write(_text(rows, list(rows[0]) if rows else [], heading=bool(rows)).encode())
  return rows


def append(path: Path, row: Row) -> None:
  """Add a row in the order of the columns that the first one named; what they lack is left out.

  Raises OSError where the disk is full; then the file stays as it was.
  """
  with path.open("a+b", buffering=0) as file:
    size = file.tell()
    file.seek(0)
    columns = next(csv.reader([file.readline().decode()]), [])
    data = _text([row], columns or list(row), heading=not columns).encode()
    try:
      if file.write(data) < len(data):
        raise OSError(28, os.strerror(28), str(path))
    except OSError:
      os.truncate(path, size)
      raise


def _text(rows: list[Row], columns: list[str], heading: bool) -> str:
  text = io.StringIO(newline="")
  writer = csv.DictWriter(text, columns, restval="nan", extrasaction="ignore")
  if heading:
    writer.writeheader()
  writer.writerows(rows)
  return text.getvalue()
