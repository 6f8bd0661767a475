"""CSV log of a run, metrics.csv: a header with the column names, then complete lines of numbers."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpurobot.run import files
from gpurobot.run.files import rewrite
from gpurobot.run.logger import Logger

NAME = "metrics.csv"  # of the file in a run folder
Row = dict[str, Any]


class CsvLog(Logger):
  """Writer of a run's metrics.csv."""

  name = NAME

  def __init__(self, folder: Path) -> None:
    self._path = folder / NAME

  def write(self, row: Mapping[str, float]) -> None:
    """Append a row."""
    append(self._path, row)


def read(path: Path) -> list[Row]:
  """Return the rows as strings by column; skip an incomplete last line, left by a crash or a full disk."""
  whole, newline, _ = files.read_text(path).rpartition("\n") if path.exists() else ("", "", "")
  return list(csv.DictReader(io.StringIO(whole + newline)))


def numbers(path: Path) -> list[dict[str, float]]:
  """Return the rows as numbers by column; raise ValueError if the file is not the log of a run."""
  try:
    rows = [{name: float(value) for name, value in row.items()} for row in read(path)]
    if rows and "seconds" not in rows[0]:
      raise ValueError("it lacks the column 'seconds'")
  except (TypeError, ValueError, csv.Error) as error:
    raise ValueError(f"'{path}' is not the log of a run ({error}): move it elsewhere") from error
  return rows


def cut(path: Path, steps: int, *numbers: str) -> list[Row]:
  """Drop the rows after `steps` environment steps and an incomplete last line; return the other rows.

  Raises ValueError, and leaves the file unchanged, if a row lacks its steps or one of the columns `numbers`.
  """
  try:
    rows = [row for row in read(path) if int(row["steps"]) <= steps]
    _ = [float(row[column]) for row in rows for column in numbers]
  except (KeyError, TypeError, ValueError, csv.Error) as error:
    reason = f"it lacks the column {error}" if isinstance(error, KeyError) else str(error)
    raise ValueError(f"'{path}' is not the log of a run ({reason}): move it elsewhere, and resume") from error
  if path.exists():
    with rewrite(path) as file:
      file.write(_text(rows, list(rows[0]) if rows else [], heading=bool(rows)).encode())
  return rows


def append(path: Path, row: Mapping[str, Any]) -> None:
  """Append a row. A column that the file lacks is added to it, with nan in the rows before.

  Raises OSError if the disk is full; the file stays unchanged then.
  """
  columns = _columns(path)
  new = [name for name in row if name not in columns]
  if columns and new:
    rows = [*read(path), row]
    with rewrite(path) as file:
      file.write(_text(rows, columns + new, heading=True).encode())
    return
  files.append(path, _text([row], columns or new, heading=not columns).encode())


def _columns(path: Path) -> list[str]:
  """Return the names of the columns; none if there is no file, or nothing in it."""
  if not path.exists():
    return []
  with path.open(newline="") as file:
    return next(csv.reader(file), [])


def _text(rows: Sequence[Mapping[str, Any]], columns: list[str], heading: bool) -> str:
  text = io.StringIO(newline="")
  writer = csv.DictWriter(text, columns, restval="nan")
  if heading:
    writer.writeheader()
  writer.writerows(rows)
  return text.getvalue()
