"""Survey of robot files: python -m benchmarks.parity.survey <folder> compares each with MuJoCo C."""

import argparse
import dataclasses
import hashlib
import itertools
import queue
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import mujoco
import numpy as np

from benchmarks.parity.survey_record import LOADING, VARIANTS, ForeignRecord, Record, Row, agrees, table
from benchmarks.parity.worker import UnfinishedError, Worker
from physics.load import compile_model, load_model
from physics.parity.open_loop import ENVIRONMENTS
from physics.parity.verdict import FLOAT64, PRECISIONS, compare, verdict
from physics.urdf import read_urdf

LIMIT = 900.0  # [s] of processor time that one comparison may take
ENDINGS = (".xml", ".urdf")
NAMED = 10  # largest number of uncounted files to name


@dataclasses.dataclass(frozen=True)
class Plan:
  """How a survey compares."""

  states: int  # per model
  seed: int = 0  # of states, controls and the sample
  precisions: Sequence[str] = PRECISIONS
  sample: int | None = None  # number of models of each source to compare, of those that load; None: all
  limit: float = LIMIT  # [s] of processor time that one comparison may take
  jobs: int = 1  # comparisons at a time


def survey(folder: Path, plan: Plan, record: Record) -> Iterator[Row]:
  """Load each model of a folder and compare it with MuJoCo C, in the order of the sources.

  Verdicts that the record has are kept. Files are read by processes of their own, and can neither end nor
  hold up the survey. Raises FileNotFoundError if the folder has no models.
  """
  workers = _Workers(plan)
  try:
    models = [*distinct_models(folder, workers, record)]
    if not models:
      raise FileNotFoundError(f"no file in {folder} is a robot: name a folder of MJCF or URDF files")
    record.keep(row.file for row in models)
    for source, rows in itertools.groupby(models, lambda row: row.source):
      looked = [*workers.map(lambda worker, row: _look(worker, folder, row, record), rows)]
      loading = [row for row in looked if row.loads and not row.float64.startswith(LOADING)]
      drawn = loading if plan.sample is None else draw(source, loading, plan.sample, plan.seed)
      yield from (row for row in looked if row not in drawn)
      yield from workers.map(lambda worker, row: _judge(worker, folder, row, plan, record), drawn)
  finally:
    workers.stop()


def distinct_models(folder: Path, workers: "_Workers", record: Record) -> Iterator[Row]:
  """Yield the files of a folder that MuJoCo compiles to a model that moves, and each such model once."""
  seen = set()
  files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
  identified = workers.map(lambda worker, file: _identify(worker, folder / file), files)
  for file, model in zip(files, identified, strict=True):
    if not model:
      record.skipped.append(file.as_posix())
    elif model not in seen:
      seen.add(model)
      yield Row(file.as_posix(), model)


def draw(source: str, rows: Sequence[Row], count: int, seed: int) -> list[Row]:
  """Return at most `count` of a source's models, drawn by the seed, independent of other sources.

  A larger sample contains the smaller one.
  """
  return Random(f"{seed} {source}").sample(rows, len(rows))[:count]


def fingerprint(path: Path) -> str:
  """Return a text that identifies a model that moves; it is empty if the file has none."""
  try:
    with warnings.catch_warnings(action="ignore"):
      mj = compile_model(path)
  except (OSError, ValueError):
    return ""  # a part that other files include, or something else in XML
  return _digest(mj) if mj.nv else ""


def _digest(mj: mujoco.MjModel) -> str:
  """Return a hash of all numbers of a model, except the paths of its files."""
  digest = hashlib.sha256()
  for owner in (mj, mj.opt):
    for name in dir(owner):
      value = None if name.startswith("_") or "path" in name else getattr(owner, name)
      if isinstance(value, np.ndarray | int | float):
        digest.update(name.encode() + np.asarray(value).tobytes())
  return digest.hexdigest()[:16]


def refusal(path: Path) -> str:
  """Return why a file does not load, or an empty text."""
  try:
    with warnings.catch_warnings(action="ignore"):
      load_model(path)
  except ValueError as error:
    return " ".join(str(error).split()).removeprefix(f"{path}: ").removeprefix("MJCF: ")
  return ""


def judge(path: Path, precision: str, states: int, seed: int, variant: str = "") -> str:
  """Return the verdict on a file, or on a variant of a URDF, in one precision."""
  mujoco.set_mju_user_warning(lambda _: None)  # about bad states, which are counted
  with warnings.catch_warnings(action="ignore"):
    model = load_model(_variant(path, variant) if variant else path)
    return verdict([finding for _, finding in compare(model, states, seed, [precision])], model)


def _variant(path: Path, variant: str) -> mujoco.MjSpec:
  return read_urdf(path, floating=variant == "floating", self_collision=variant != "apart")


def _identify(worker: Worker, path: Path) -> str:
  """Return the fingerprint of a file, empty if MuJoCo itself does not compile it."""
  try:
    return str(worker.run(fingerprint, path))
  except UnfinishedError:
    return ""


def _look(worker: Worker, folder: Path, row: Row, record: Record) -> Row:
  """Return the row with the result of loading it, or the record's row."""
  known = record.known(row.file, row.model)
  if known:
    return known
  try:
    row = dataclasses.replace(row, refusal=worker.run(refusal, folder / row.file))
  except UnfinishedError as error:
    row = row.judged(FLOAT64, f"{LOADING}{error}")
  record.add(row)
  return row


def _judge(worker: Worker, folder: Path, row: Row, plan: Plan, record: Record) -> Row:
  """Return the row with the verdicts that it lacks, on the variants of a URDF that does not agree too."""

  def judged(row: Row, kind: str, precision: str, variant: str = "") -> Row:
    if row.verdict(kind):
      return row
    try:
      verdict = worker.run(judge, folder / row.file, precision, plan.states, plan.seed, variant)
    except UnfinishedError as error:
      verdict = str(error)
    row = row.judged(kind, verdict)
    record.add(row)
    return row

  for precision in plan.precisions:
    row = judged(row, precision, precision)
  for variant in VARIANTS if row.varies else ():
    row = judged(row, variant, FLOAT64, variant)
  return row


class _Workers:
  """As many workers as there are jobs at a time."""

  def __init__(self, plan: Plan) -> None:
    self._idle: queue.Queue[Worker] = queue.Queue()
    for _ in range(plan.jobs):
      self._idle.put(Worker(plan.limit))
    self._pool = ThreadPoolExecutor(plan.jobs)

  def map(self, task: Callable[[Worker, Any], Any], items: Any) -> Iterator[Any]:
    """Yield what `task` returns for each item, in their order."""
    return self._pool.map(lambda item: self._run(task, item), items)

  def stop(self) -> None:
    """End all processes, once they have finished their current tasks."""
    self._pool.shutdown(cancel_futures=True)
    while not self._idle.empty():
      self._idle.get().stop()

  def _run(self, task: Callable[[Worker, Any], Any], item: Any) -> Any:
    worker = self._idle.get()
    try:
      return task(worker, item)
    finally:
      self._idle.put(worker)


def main(arguments: list[str] | None = None) -> int:
  """Print a line per model of a folder, then the table; return 0 if all agree, 1 if not, 2 without models."""
  parser = _parser()
  options = parser.parse_args(arguments)
  for name, least in (("states", ENVIRONMENTS), ("sample", 1), ("jobs", 1), ("limit", 0)):
    if (value := getattr(options, name)) is not None and value < least:
      parser.error(f"--{name} {value:g}: it has to be {least} or more")
  if options.results and options.results.exists() and not options.results.is_dir():
    parser.error(f"--results {options.results}: it is a file, not a folder")
  precisions = [options.precision] if options.precision else PRECISIONS
  plan = Plan(options.states, options.seed, precisions, options.sample, options.limit, options.jobs)
  try:
    record = Record(options.results)
    for row in survey(options.folder, plan, record):
      verdicts = [f"{name}: {row.verdict(name)}" for name in PRECISIONS if row.verdict(name)]
      print(f"{row.file}: {'; '.join(verdicts) or row.refusal or 'loads'}", flush=True)
  except (FileNotFoundError, ForeignRecord) as error:
    print("error:", error, file=sys.stderr)
    return 2
  print("", *table(record), sep="\n")
  if skipped := record.skipped:
    names = ", ".join(f"`{file}`" for file in skipped[:NAMED]) + (", ..." if len(skipped) > NAMED else "")
    why = "no model that moves (compare one alone to see why)"
    print(f"- not counted, {why}: {len(skipped)}, {names}")
  return 0 if all(map(agrees, record)) else 1


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser("python -m benchmarks.parity.survey", description=__doc__)
  add = parser.add_argument
  add("folder", type=Path, help="folder of MJCF and URDF files, with a subfolder for each source")
  add("--states", type=int, default=256, help="number of states to compare (default: 256)")
  add("--seed", type=int, default=0, help="seed of states, controls and the sample (default: 0)")
  add("--precision", choices=PRECISIONS, help="compare in one of them; float64 builds no kernel")
  add("--jobs", type=int, default=1, help="comparisons at a time (default: 1)")
  add("--sample", type=int, help="number of models of each subfolder to compare (default: all)")
  add("--limit", type=float, default=LIMIT, help=f"seconds of processor time each (default: {LIMIT:g})")
  add(
    "--results",
    type=Path,
    help="where robots.csv and robot_files.csv are written as the survey goes; verdicts there are kept,"
    " whatever the other options, so that a survey that was ended goes on",
  )
  return parser


if __name__ == "__main__":
  sys.exit(main())
