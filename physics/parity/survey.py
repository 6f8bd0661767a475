"""Survey of a folder of robot files: how many load, and how many agree with MuJoCo C, by source."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import hashlib
import itertools
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import mujoco
import numpy as np

from physics.load import compile_model, load_model

AGREES, OPEN, DIFFERS, UNFINISHED = "agrees", "open", "differs", "unfinished"
REFUSED, LOADS = "refused", "loads"  # without a comparison
VERDICTS = {  # by a comparison's exit status and the begin of its last line
  (0, "agrees"): AGREES,
  (1, "agrees"): OPEN,  # but contacts are an open choice in too many states
  (1, "does not agree"): DIFFERS,
}
LIMIT = 900.0  # [s] that one comparison may take


@dataclasses.dataclass(frozen=True)
class Result:
  """What became of one file."""

  path: Path
  outcome: str
  verdict: str  # the last line of the comparison, or why there is none


def survey(
  folder: Path, options: list[str], jobs: int, sample: int | None = None, seed: int = 0
) -> Iterator[Result]:
  """Load each model of a folder, and compare it with MuJoCo C, `jobs` at a time, in the order of their paths.

  With `sample`, at most so many of each source that load are compared, drawn by the seed. `options` are those
  of `python -m physics.parity`. Raises FileNotFoundError if the folder has no models.
  """
  results = []
  with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
    for source, models in itertools.groupby(
      distinct_models(folder), lambda found: source_of(folder, found[0])
    ):
      refusals = {path: _refusal(mj) for path, mj in models}
      loading = [path for path, refusal in refusals.items() if not refusal]
      drawn = loading if sample is None else draw(source, loading, sample, seed)
      results += [
        pool.submit(compare_file, path, options)
        if path in drawn
        else pool.submit(Result, path, REFUSED if refusal else LOADS, refusal)
        for path, refusal in refusals.items()
      ]
    if not results:
      raise FileNotFoundError(f"no file in {folder} is a robot: name a folder of MJCF or URDF files")
    yield from (each.result() for each in results)


def _refusal(mj: mujoco.MjModel) -> str:
  """Return why a compiled model does not load, or an empty text."""
  try:
    with warnings.catch_warnings(action="ignore"):
      load_model(mj)
  except ValueError as error:
    return " ".join(str(error).split()).removeprefix("MJCF: ")
  return ""


def draw(source: str, paths: Sequence[Path], count: int, seed: int) -> list[Path]:
  """Return at most `count` of a source's paths, drawn by the seed, whatever other sources there are."""
  return Random(f"{seed} {source}").sample(paths, min(count, len(paths)))


def source_of(folder: Path, path: Path) -> str:
  """Return the subfolder, or the file, of `folder` that a file belongs to."""
  return path.relative_to(folder).parts[0]


def distinct_models(folder: Path) -> Iterator[tuple[Path, mujoco.MjModel]]:
  """Yield the files of a folder that MuJoCo compiles to a model that moves, and each such model once."""
  seen = set()
  for path in sorted(path for ending in ("xml", "urdf") for path in folder.rglob(f"*.{ending}")):
    try:
      with warnings.catch_warnings(action="ignore"):
        mj = compile_model(path)
    except (OSError, ValueError):
      continue  # a part that other files include, or something else in XML
    if mj.nv and (key := _fingerprint(mj)) not in seen:
      seen.add(key)
      yield path, mj


def _fingerprint(mj: mujoco.MjModel) -> bytes:
  """Return what tells two models apart: all their numbers, but for where their files lie."""
  digest = hashlib.sha256()
  for owner in (mj, mj.opt):
    for name in dir(owner):
      value = None if name.startswith("_") or "path" in name else getattr(owner, name)
      if isinstance(value, np.ndarray | int | float):
        digest.update(name.encode() + np.asarray(value).tobytes())
  return digest.digest()


def compare_file(path: Path, options: list[str], limit: float = LIMIT) -> Result:
  """Compare one file in a process of its own: no file can end or hold up the survey."""
  command = [sys.executable, "-m", "physics.parity", str(path), *options]
  try:
    run = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
  except subprocess.TimeoutExpired:
    return Result(path, UNFINISHED, f"took more than {limit:g} s")
  printed, complaint = (text.strip().rpartition("\n")[2] for text in (run.stdout, run.stderr))
  if run.returncode == 2:
    return Result(path, REFUSED, complaint.removeprefix("error: ").removeprefix(f"{path}: "))
  for (status, begin), outcome in VERDICTS.items():
    if run.returncode == status and printed.startswith(begin):
      return Result(path, outcome, printed)
  return Result(path, UNFINISHED, f"ended with status {run.returncode}: {complaint}")


def table(folder: Path, results: list[Result]) -> Iterator[str]:
  """Yield the lines of a Markdown table by source, a folder in `folder`; then what does not agree."""
  sources = collections.defaultdict(list)
  for result in results:
    sources[source_of(folder, result.path)].append(result.outcome)
  yield "| source | models | load | compared | agree | open |"
  yield "|---|---|---|---|---|---|"
  for source, outcomes in [*sources.items(), ("all", [result.outcome for result in results])]:
    counts = collections.Counter(outcomes)
    load = len(outcomes) - counts[REFUSED]
    row = (source, len(outcomes), load, load - counts[LOADS], counts[AGREES], counts[OPEN])
    yield f"| {' | '.join(map(str, row))} |"
  yield ""
  for result in results:
    if result.outcome not in (AGREES, LOADS):
      yield f"- `{result.path.relative_to(folder)}`: {result.verdict}"
