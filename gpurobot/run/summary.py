"""Summary of a run: summary.json, and a few lines that say how it went and what to do next."""

import math
import shlex
from pathlib import Path
from typing import Any

from gpurobot.learn.algorithm import Algorithm, counted
from gpurobot.run import checkpoint, csv_log
from gpurobot.run.folder import shown
from gpurobot.run.output import aligned
from gpurobot.run.returns import Returns, Score, scores
from gpurobot.settings.config import TrainConfig, code_keys, to_dict

FILE = "summary.json"
HEADINGS = {"rising": ", still rising", "falling": ", now falling", "level": ", levelled off", "": ""}
EXTREMES = ("reward/min", "reward/max")  # columns of the reward that are no terms of it


def content(
  config: TrainConfig, learner: Algorithm, seconds: float, folder: Path, returns: Returns
) -> dict[str, Any]:
  """Return what summary.json says of a run in a folder after `seconds` of training."""
  rows = csv_log.numbers(folder / csv_log.NAME)
  return {
    **{key: getattr(config, key) for key in ("task", "seed", "num_envs")},
    "iterations": learner.iteration,
    "steps": learner.steps,
    "seconds": seconds,
    "steps_per_second": learner.steps / seconds,
    "return": returns.score.mean,
    "best_return": returns.best,
    **{name: [Score(), *scores(rows, name)][-1].mean for name in ("length", "success")},
    "reached_seconds": returns.reached,
    "training": learner.describe(),
  }


def lines(
  config: TrainConfig, summary: dict[str, Any], row: dict[str, float], returns: Returns, folder: Path
) -> list[str]:
  """Return the summary as text: the run, its returns, its warnings, and the commands that come next."""
  folder = shown(folder)
  speed = f"{summary['steps_per_second']:,.0f} steps/s"
  lines = [f"{folder}: {summary['steps']:,} steps in {duration(summary['seconds'])}, {speed}"]
  rows = [("return", _return(returns, row))]
  if summary["success"] is not None:
    rows.append(("success", f"{summary['success']:.1%} of these episodes"))
  if returns.best is not None:
    mean = f"{returns.best:,.2f}, the mean of {returns.best_episodes:,.0f} episodes"
    rows.append(("best return", f"{mean}, after {returns.best_steps:,} steps"))
  if summary["warnings"]:
    rows.append(("warnings", f"{len(summary['warnings'])}, listed in {folder / FILE}"))
  kept = checkpoint.kept(folder)
  rows += [("best policy" if path.name == checkpoint.BEST else "saved", str(path)) for path in kept]
  if checkpoint.exists(folder):
    rows += commands(config, folder)
  return lines + [f"  {line}" for line in aligned(rows)]


def _return(returns: Returns, row: dict[str, float]) -> str:
  """Return the mean return of a run; before one is known, the last row's mean reward per step."""
  if returns.score.mean is None:
    terms = [value for name, value in row.items() if name.startswith("reward/") and name not in EXTREMES]
    rest = f"; mean reward {sum(terms):,.3g} per step" if terms and math.isfinite(sum(terms)) else ""
    taught = ", nor one that a teacher drives" if "teacher_share" in row else ""
    return f"none yet, as the first episode of each environment does not count{taught}{rest}"
  episodes = counted(round(returns.score.episodes), "episode")
  return f"{returns.score.mean:,.2f}, the mean of the last {episodes}{HEADINGS[returns.heading]}"


def commands(config: TrainConfig, folder: Path) -> list[tuple[str, str]]:
  """Return what a user may do with a run, and how, with the arguments that name code of the user's own."""
  own = config.task.endswith(".py") or "." in Path(config.task).name  # no task of gpurobot's
  policy = [word for word in checkpoint.code_arguments(config) if own or not word.startswith("task=")]
  values, keys = to_dict(config), (["task"] if own else []) + sorted(code_keys(config))
  training = [f"{key}={values[key]}" for key in keys if values[key] is not None]
  return [
    ("watch", shlex.join(["gpurobot", "play", str(folder), *policy])),
    ("plot", shlex.join(["gpurobot", "plot", str(folder)])),
    ("continue", shlex.join(["gpurobot", "train", f"resume={folder}", *training])),
  ]


def duration(seconds: float) -> str:
  """Return a time as people write it: 12.3 s, 4:05 min, 3:04:05 h."""
  whole = round(seconds)
  if whole < 60:
    return f"{seconds:.1f} s"
  minutes, rest = divmod(whole, 60)
  hours, minutes = divmod(minutes, 60)
  return f"{hours}:{minutes:02d}:{rest:02d} h" if hours else f"{minutes}:{rest:02d} min"
