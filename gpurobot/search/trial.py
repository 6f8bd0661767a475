"""Trial: one run of train.py in its own folder, with its settings, its limits and its figures."""

import dataclasses
import functools
import json
import math
import re
from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import tasks
from gpurobot.device.distributed import World
from gpurobot.device.process import usable_cores
from gpurobot.run import checkpoint
from gpurobot.run.csv_log import NAME, numbers
from gpurobot.run.files import damaged, fits, read_json, rewrite
from gpurobot.run.returns import WINDOW, scores
from gpurobot.settings.config import LIMITS, ConfigError, TrainConfig, assign, suggestion, to_dict
from gpurobot.settings.removed_keys import RENAMED, present
from gpurobot.shell import cli

PROGRAM = Path(__file__).resolve().parents[2] / "train.py"
OUTPUT = "output.txt"  # console output of a trial, in its folder
# Numbers of a summary, and their types.
FIGURES = dict.fromkeys(("seed", "iterations", "steps", "seconds", "steps_per_second"), int | float)
FIGURES["return"] = int | float | None
SUMMARY, PARTS = "summary.json", "parts.json"  # of the whole run; the scores after its parts
PART = re.compile(r"\d{1,9}(/[1-9]\d{0,8})?")  # of the limits, in the scores
OWN = ("seed", "run_dir")  # settings in which the runs of a setting differ
PLACES = ("run_dir", "resume", "threads", "debug")  # settings that may differ between two starts of a trial


Own = dataclasses.make_dataclass(
  "Own",
  [
    (field.name, field.type, dataclasses.field(default=field.default, metadata=field.metadata))
    for field in dataclasses.fields(TrainConfig)
    if field.name in OWN
  ],
)


class Mode(StrEnum):
  """Direction of a metric: whether the largest or the smallest is best."""

  max = "max"
  min = "min"


class Measure(NamedTuple):
  """Measure to compare trials by: a column of their logs."""

  metric: str = "return"
  mode: Mode = Mode.max
  level: float | None = None  # the time to reach it is reported

  @property
  def sign(self) -> int:
    """The factor on the metric that makes the best the largest."""
    return 1 if self.mode is Mode.max else -1

  def reached(self, value: float | None) -> bool:
    """Return whether a value of the metric is at the level or better."""
    return self.level is not None and value is not None and self.sign * (value - self.level) >= 0


@dataclasses.dataclass(frozen=True)
class Trial:
  """One run: the arguments that vary (without the seed), all arguments by key, and the configuration.

  measure: compares it with others. part: share of its limits to use now. parent: folder of the run that
  it continues, if it has no checkpoint of its own.
  """

  setting: tuple[str, ...]
  values: Mapping[str, str]
  config: TrainConfig
  measure: Measure
  part: Fraction = Fraction(1)
  parent: Path | None = None

  @property
  def name(self) -> str:
    """The arguments that distinguish this trial from the others."""
    return " ".join([*self.setting, f"seed={self.config.seed}"])

  @property
  def folder(self) -> Path:
    """The run folder."""
    return Path(str(self.config.run_dir))

  @property
  def limits(self) -> dict[str, int | float]:
    """The limits of the run, as far as `part` goes."""
    return limits(self.config, self.part)

  def until(self, part: Fraction) -> "Trial":
    """Return the trial with another part of its limits."""
    return dataclasses.replace(self, part=part)

  def is_finished(self) -> bool:
    """Return whether the run has reached one of its limits (an interrupted run has a summary too)."""
    if not (self.folder / SUMMARY).exists():
      return False
    summary = self._summary()
    return any(summary[limit.removeprefix("max_")] >= end for limit, end in self.limits.items())

  def command(self) -> list[str]:
    """Return the program that starts the run, or resumes it from its checkpoint, and its arguments."""
    source = self.folder if checkpoint.exists(self.folder) else self.parent
    resume = [] if source is None else [f"resume={source}"]
    ends = {limit: str(end) for limit, end in self.limits.items()} if self.part < 1 else {}
    values = {**self.values, **ends}
    if source:
      values.pop("checkpoint", None)  # it began from that
    words = [f"{key}={value}" for key, value in values.items()]
    return [str(PROGRAM), *resume, *words]

  def result(self) -> dict[str, Any]:
    """Return the figures of a finished run; its metric is the mean of a `Score`, None without episodes.

    Raises ConfigError if the log has no column of the metric's name.
    """
    summary = self._summary()
    figures = {name: summary[name] for name in ("seed", "return", "steps", "seconds", "steps_per_second")}
    rows, metric = numbers(self.folder / NAME), self.measure.metric
    if rows and metric not in rows[0]:
      hint = suggestion(metric, rows[0]) or f", as {', '.join(rows[0])} are"
      raise ConfigError(f"metric={metric} is no column of '{self.folder / NAME}'{hint}")
    value = reached = None
    for row, score in zip(rows, scores(rows, metric), strict=True):
      value = score.mean
      if reached is None and score.episodes >= WINDOW and self.measure.reached(value):
        reached = row["seconds"]
    figures.setdefault(metric, value)  # the summary has the return
    return figures | {"seconds_to_level": reached, "trained": float(self.part)}

  def _summary(self) -> dict[str, Any]:
    return read_json(self.folder / SUMMARY, **FIGURES)

  def begin_parts(self) -> None:
    """Note that the run goes to its limits in parts, so that `check` allows other limits.

    Raises ConfigError if its parts have been compared by another metric.
    """
    if not (self.folder / PARTS).exists():
      self.folder.mkdir(parents=True, exist_ok=True)
      self._keep({})
    metric, mode = (self._parts()[name] for name in ("metric", "mode"))
    if (metric, mode) != self.measure[:2]:
      raise ConfigError(
        f"'{self.folder}' holds a run compared by metric={metric} mode={mode}; choose another folder="
      )

  def scores(self) -> dict[Fraction, float]:
    """Return the score after each part of the limits that is finished."""
    known = self._parts()["scores"]
    if not all(PART.fullmatch(part) and fits(value, int | float | None) for part, value in known.items()):
      raise damaged(self.folder / PARTS, "scores")
    return {Fraction(part): -math.inf if value is None else value for part, value in known.items()}

  def _parts(self) -> dict[str, Any]:
    return read_json(self.folder / PARTS, metric=str, mode=str, scores=dict)

  def keep_score(self) -> None:
    """Store the score after the present part, unless it is known: the run may have gone on since."""
    known, score = self.scores(), self.score()
    if score is not None and self.part not in known:
      self._keep(known | {self.part: score})

  def _keep(self, scores: Mapping[Fraction, float]) -> None:
    plain = {str(part): value if math.isfinite(value) else None for part, value in scores.items()}
    compared = {"metric": self.measure.metric, "mode": self.measure.mode, "scores": plain}
    with rewrite(self.folder / PARTS) as file:
      file.write(json.dumps(compared).encode())

  def score(self) -> float | None:
    """Return the metric, negative if the smallest is best; None if the run has failed.

    A metric without episodes is -inf.
    """
    if not self.is_finished():
      return None
    value = self.result()[self.measure.metric]
    return -math.inf if value is None else self.measure.sign * float(value)


def limits(config: TrainConfig, part: Fraction) -> dict[str, int | float]:
  """Return a part of the limits that are set, by key; environment steps and iterations are rounded up."""
  whole = {limit: getattr(config, limit) for limit in LIMITS}
  given = {limit: end for limit, end in whole.items() if end is not None}
  return {
    limit: math.ceil(end * part) if isinstance(end, int) else float(end * part)
    for limit, end in given.items()
  }


def read_config(values: Mapping[str, str]) -> TrainConfig:
  """Return the configuration of a run with these values by key; raise ConfigError if it is rejected.

  Runs that differ in their seeds alone share the check of the others, which takes a fifth of a second.
  """
  given = cli.given_words([f"{key}={values[key]}" for key in OWN if key in values], OWN)
  own = assign(Own(), given)
  shared = _read(tuple(f"{key}={value}" for key, value in values.items() if key not in OWN))
  return dataclasses.replace(shared, **{key: getattr(own, key) for key in given})


@functools.cache
def _read(words: tuple[str, ...]) -> TrainConfig:
  return cli.parse([*words], tasks.load, World())[0]


def make_trial(values: dict[str, str], varying: set[str], folder: Path, jobs: int, measure: Measure) -> Trial:
  """Return the trial with these values by key; raise ConfigError if train.py or `check` rejects them.

  varying: keys that distinguish the trial; with its seed their values name its folder below `folder`.
  """
  words = {key: f"{key}={value}" for key, value in values.items()}
  setting = tuple(word for key, word in words.items() if key in varying and key != "seed")
  parts = [",".join(setting), words["seed"]] if setting else [words["seed"]]
  place = Path(folder, *(re.sub(r"[^\w.,=+\[\]-]", "_", part) for part in parts))
  return assemble(setting, values, place, jobs, measure)


def assemble(
  setting: tuple[str, ...],
  values: dict[str, str],
  folder: Path,
  jobs: int,
  measure: Measure,
  parent: Path | None = None,
) -> Trial:
  """Return the trial with these values by key in a folder; raise ConfigError if they are rejected.

  setting: the words that distinguish it. jobs: trials that run at a time and share the cores.
  """
  values = {**values, "run_dir": str(folder)}
  config = read_config(values)
  check(config, folder)
  if jobs > 1 and "threads" not in values:
    share = max(1, usable_cores() // jobs)
    values["threads"] = str(min(share, config.threads or share))
  return Trial(setting, values, config, measure, parent=parent)


def check(config: TrainConfig, folder: Path) -> None:
  """Raise ConfigError if a run would never end, or if its folder holds a run with other settings."""
  if all(getattr(config, limit) is None for limit in LIMITS):
    raise ConfigError(f"the runs of a sweep need a limit; set one of {', '.join(LIMITS)}")
  path = folder / "config.json"
  if path.exists():
    saved, wanted = present(read_json(path)), to_dict(config)
    there = {key if key in wanted else RENAMED.get(key, key): value for key, value in saved.items()}
    free = {*PLACES, *(LIMITS if (folder / PARTS).exists() else ())}
    other = [key for key in {**there, **wanted} if there.get(key) != wanted.get(key) and key not in free]
    if other:
      raise ConfigError(f"'{folder}' holds a run with another {', '.join(other)}; choose another folder=")
