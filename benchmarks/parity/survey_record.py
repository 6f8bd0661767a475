"""Record of a survey: the outcome for each model, in a file that grows with it, and the counts by source."""

import csv
import dataclasses
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.markdown import markdown
from physics.parity.verdict import AGREES, DIFFERS, FLOAT32, FLOAT64, PRECISIONS

VARIANTS = ("apart", "floating")  # of a URDF: without collisions among its links, or with a floating base
FILES, SOURCES = "robot_files.csv", "robots.csv"
OUTCOMES = ("agree", "open", "differ", "not done")
LOADING = "loading: "  # begins the verdict on a model that did not load, though nothing refused it


@dataclasses.dataclass(frozen=True)
class Row:
  """Findings on one model; a text without a finding is empty."""

  file: str  # in the folder of the survey
  model: str  # the beginning of its fingerprint
  refusal: str = ""  # why it does not load
  float64: str = ""  # the verdict in that precision
  float32: str = ""
  apart: str = ""  # in float64, of a URDF that does not agree as it is: without collisions among its links
  floating: str = ""  # likewise with a floating base

  @property
  def source(self) -> str:
    """The subfolder, or the file, of the folder that this file belongs to."""
    return Path(self.file).parts[0]

  @property
  def loads(self) -> bool:
    """Whether the engine takes the model."""
    return not self.refusal

  def verdict(self, kind: str) -> str:
    """Return the verdict in a precision, or on a variant, empty without a comparison."""
    return str(getattr(self, kind))

  @property
  def varies(self) -> bool:
    """Whether it is a URDF that does not agree as MuJoCo loads it, with its base in the world."""
    return self.file.lower().endswith(".urdf") and bool(self.float64) and outcome(self.float64) != OUTCOMES[0]

  def judged(self, kind: str, verdict: str) -> "Row":
    """Return the row with a verdict in a precision, or on a variant."""
    return dataclasses.replace(self, **{kind: verdict})


class ForeignRecord(ValueError):
  """The error for a file of another program where a survey's would be."""


class Record:
  """The rows of a survey by file, written to a folder, if one is given, whenever one of them is new.

  Threads may share a record.
  """

  def __init__(self, folder: Path | None = None) -> None:
    self.folder = folder
    self.skipped: list[str] = []  # files that are no model that moves
    self._rows: dict[str, Row] = {}
    self._lock = threading.Lock()
    if folder and (folder / FILES).exists():
      with (folder / FILES).open(newline="") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames != [field.name for field in dataclasses.fields(Row)]:
          raise ForeignRecord(f"{folder / FILES} is not of a survey: name another folder")
        self._rows = {row["file"]: Row(**row) for row in rows}

  def __iter__(self) -> Iterator[Row]:
    """Yield the rows in the order of their files."""
    return iter(sorted(self._rows.values(), key=lambda row: Path(row.file).parts))

  def known(self, file: str, model: str) -> Row | None:
    """Return the row of a file, if it still is the same model."""
    row = self._rows.get(file)
    return row if row and row.model == model else None

  def keep(self, files: Iterable[str]) -> None:
    """Forget all other files: they are gone, or are copies of these."""
    wanted = {*files}
    with self._lock:
      self._rows = {file: row for file, row in self._rows.items() if file in wanted}
      self._write()

  def add(self, row: Row) -> None:
    """Add a row, or replace the row of the same file."""
    with self._lock:
      self._rows[row.file] = row
      self._write()

  def _write(self) -> None:
    if not self.folder:
      return
    names = [field.name for field in dataclasses.fields(Row)]
    _write_csv(self.folder / FILES, [names, *([*dataclasses.asdict(row).values()] for row in self)])
    counted = counts(self)
    _write_csv(self.folder / SOURCES, [[*counted["all"]], *([*row.values()] for row in counted.values())])


def outcome(verdict: str) -> str:
  """Return the kind of a verdict, one of `OUTCOMES`."""
  if verdict.startswith(AGREES):
    return "open" if "left open" in verdict else "agree"
  return "differ" if verdict.startswith(DIFFERS) else "not done"


def counts(rows: Iterable[Row]) -> Mapping[str, Mapping[str, str | int]]:
  """Return the columns of the table by source; the last source is `all`."""
  by_source: dict[str, list[Row]] = {}
  for row in rows:
    by_source.setdefault(row.source, []).append(row)
  everything = [row for each in by_source.values() for row in each]
  return {source: _count(source, each) for source, each in [*by_source.items(), ("all", everything)]}


def _count(source: str, rows: Sequence[Row]) -> dict[str, str | int]:
  columns: dict[str, str | int] = {"source": source, "models": len(rows)}
  columns["load"] = sum(row.loads and not row.float64.startswith(LOADING) for row in rows)
  for precision in PRECISIONS:
    verdicts = [row.verdict(precision) for row in rows]
    found = Counter(outcome(verdict) for verdict in verdicts if verdict)
    columns |= {f"{precision} {kind}": found[kind] for kind in OUTCOMES}
  for variant in VARIANTS:
    agreeing = [row for row in rows if row.varies and outcome(row.verdict(variant)) == OUTCOMES[0]]
    columns[f"agree {variant}"] = len(agreeing)
  return columns


def table(rows: Iterable[Row]) -> Iterator[str]:
  """Yield the lines of a Markdown table by source; then the refusals, and the models that do not agree."""
  listed = [*rows]
  counted = counts(listed)
  yield from markdown(
    [[*counted["all"]], *([*map(str, row.values())] for row in counted.values())]
  ).splitlines()
  yield ""
  for row in listed:
    notes = [f"{name}: {row.verdict(name)}" for name in (FLOAT64, FLOAT32) if not _is_well(row.verdict(name))]
    notes += [f"{name}: {row.verdict(name)}" for name in VARIANTS if row.varies and row.verdict(name)]
    for note in [row.refusal, *notes] if row.refusal else notes:
      yield f"- `{row.file}`: {note}"


def agrees(row: Row) -> bool:
  """Return whether a model loads, and agrees in every precision that it was compared in."""
  return row.loads and all(_is_well(row.verdict(precision)) for precision in PRECISIONS)


def _is_well(verdict: str) -> bool:
  return not verdict or outcome(verdict) == "agree"


def _write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
  """Replace a file in one step: a survey that is ended leaves the old one or the new one."""
  path.parent.mkdir(parents=True, exist_ok=True)
  new = path.with_suffix(".new")
  with new.open("w", newline="") as file:
    csv.writer(file, lineterminator="\n").writerows(rows)
  new.replace(path)
