"""Evaluation of a policy: python -m gpurobot.evaluate checkpoint=<run folder or .pt file> [key=value ...].

Every environment contributes the same number of complete episodes, its first ones. Otherwise short episodes
would count more often than long ones.
"""

import contextlib
import dataclasses
import io
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from gpurobot import export
from gpurobot.deploy.compiled import COMPILER, Compiled
from gpurobot.deploy.exported import NAMES, Exported
from gpurobot.deploy.figures import Act, Figure, run, table
from gpurobot.deploy.header import HEADER
from gpurobot.deploy.trained import Engine, PolicySettings, has_file, load, read, start
from gpurobot.learn.env import VecEnv
from gpurobot.learn.random import Random
from gpurobot.run import checkpoint
from gpurobot.run.csv_log import NAME, numbers
from gpurobot.settings.config import MOST_ENVS, ConfigError, option, to_dict

ONNX = "ONNX"
TAIL = 0.1  # share of the log's rows, the last ones, that stand for the training in a report


@dataclasses.dataclass
class EvaluationSettings(PolicySettings):
  """Evaluation of a policy."""

  episodes: int = option(
    100, "episodes to average over, rounded up to a multiple of num_envs", low=1, high=MOST_ENVS
  )
  engine: Engine = option(
    Engine.own,
    "own: gpurobot's; mujoco: MuJoCo C in float64 on the same model; file: MuJoCo C on the robot's own file, "
    "env.robot, as it stands; gymnasium: a gym/* task's original environment",
  )
  gap: bool = option(
    False, "evaluate in engine=own too (with mujoco: from the same initial states) and print the differences"
  )
  num_envs: int | None = option(
    None, "number of parallel environments; null: one for each episode", low=1, high=MOST_ENVS
  )
  report: bool = option(
    False,
    "print side by side: training, engine=own, perturbed, engine=mujoco, there the exported ONNX and C++, "
    "and ONNX in engine=file",
  )
  perturbed: bool = option(
    False, "act with the noise, delays, pushes and random robots of training; otherwise without"
  )
  sampled: bool = option(False, "sample actions as in training; otherwise the policy's means are used")
  json: str | None = option(None, "file to write the figures to, as JSON")


def evaluate(settings: EvaluationSettings, engine: Engine, policy: Act | None = None) -> dict[str, Figure]:
  """Return the figures of a checkpoint's policy, or of another one in its place.

  Raises ConfigError or CheckpointError on bad settings.
  """
  num_envs = settings.num_envs or settings.episodes
  if settings.perturbed and engine is not Engine.own:
    raise ConfigError(f"perturbed=true acts in engine=own; leave it out with engine={engine}")
  trained = load(settings, num_envs, engine, settings.perturbed)
  if settings.sampled:
    trained.policy.random = Random(settings.seed, num_envs, 0, trained.env.device)
  figures = run(trained.env, policy or trained.policy, -(-settings.episodes // num_envs))
  dropped = int(trained.env.counters().get("overflow", 0)) if isinstance(trained.env, VecEnv) else 0
  if dropped:
    print(f"warning: {dropped} contacts exceeded the capacity and were dropped", file=sys.stderr)
  return figures


def report_columns(settings: EvaluationSettings) -> dict[str, dict[str, Figure]]:
  """Return the figures of each step of the way, by its name and theirs.

  The training's intervals are of its last rows, the others of their episodes. A demo has no training,
  and without a compiler there is no C++.
  """
  plain, logged = dataclasses.replace(settings, perturbed=False), {}
  here = evaluate(plain, Engine.own)
  if not settings.demo:
    logged = {name: one for name, one in _training(str(settings.checkpoint)).items() if name in here}
  found = {
    **({"training": logged} if logged else {}),
    "here": here,
    "perturbed": evaluate(dataclasses.replace(settings, perturbed=True), Engine.own),
    "MuJoCo C": evaluate(plain, Engine.mujoco),
  }
  with tempfile.TemporaryDirectory() as scratch:
    for name, policy in _exported(settings, Path(scratch)):
      found[f"{name} in MuJoCo C"] = evaluate(plain, Engine.mujoco, policy)
      if name == ONNX and has_file(read(settings.checkpoint, to_dict(settings))[0]):
        found |= _on_own_file(plain, policy)
  return found


def _on_own_file(settings: EvaluationSettings, policy: Act) -> dict[str, dict[str, Figure]]:
  """Return the column of a policy on the robot's own file; without it, say why."""
  try:
    return {f"{ONNX} on the robot's file": evaluate(settings, Engine.file, policy)}
  except ConfigError as error:
    print(f"no column of the robot's own file: {error}", file=sys.stderr)
    return {}


def _training(source: str) -> dict[str, Figure]:
  """Return the means of the last rows of a run's log; nothing where the run has none."""
  rows = numbers(checkpoint.find(source).parent / NAME)
  tail = rows[-max(2, int(TAIL * len(rows))) :]
  if len(tail) < 2:
    return {}
  logged = {name: torch.tensor([row[name] for row in tail]) for name in tail[0]}
  return {name: Figure.mean(x, torch.ones_like(x)) for name, x in logged.items()}


def _exported(settings: EvaluationSettings, folder: Path) -> Iterator[tuple[str, Any]]:
  """Export the policy to a folder; yield the names of the programs that can run it, and the policies."""
  own = {field.name: getattr(settings, field.name) for field in dataclasses.fields(PolicySettings)}
  with contextlib.redirect_stdout(io.StringIO()):
    export.export(export.Export(**own, folder=str(folder)))
  num_envs = settings.num_envs or settings.episodes
  yield ONNX, Exported(folder / NAMES[0], num_envs)
  if (folder / HEADER).exists() and shutil.which(COMPILER):
    yield "C++", Compiled(folder, num_envs)


def show(settings: EvaluationSettings) -> None:
  """Print a table of the figures with their 95 % intervals, and write them to the file `json`."""
  if settings.gap and settings.engine is Engine.own:
    raise ConfigError("gap=true compares another engine with engine=own; add engine=mujoco")
  if settings.report:
    if settings.engine is not Engine.own or settings.gap or settings.perturbed:
      raise ConfigError("report=true shows other engines and perturbations too; leave these settings out")
    figures = report_columns(settings)
    found = figures["here"]
  else:
    found = evaluate(settings, settings.engine)
    figures = {settings.engine.name: found}
  if settings.gap:
    own = evaluate(settings, Engine.own)
    figures |= {"own": own, "gap": {name: found[name] - own[name] for name in found if name in own}}
  episodes = len(found["return"].deviations)
  print(table(episodes, figures))
  if settings.json is not None:
    write(
      Path(settings.json), {"episodes": episodes} | {name: _plain(part) for name, part in figures.items()}
    )


def _plain(figures: Mapping[str, Figure]) -> dict[str, dict[str, float | None]]:
  """Return value and interval of each figure for JSON, which has no nan: it is null."""

  def finite(number: float) -> float | None:
    return number if math.isfinite(number) else None

  return {
    name: {"value": finite(figure.value), "interval_95": finite(figure.interval)}
    for name, figure in figures.items()
  }


def write(path: Path, content: Mapping[str, Any]) -> None:
  """Write a JSON file; raise ConfigError if the file cannot be written."""
  try:
    path.write_text(json.dumps(content, indent=2, allow_nan=False) + "\n")
  except OSError as error:
    raise ConfigError(f"json={path} cannot be written: {error.strerror}") from error


def main(argv: list[str]) -> None:
  """Evaluate a policy with the settings in `argv`."""
  start(EvaluationSettings(), "python -m gpurobot.evaluate", argv, show)


if __name__ == "__main__":
  main(sys.argv[1:])
