"""Summary of a run: summary.json, and a few lines that say how it went and what to do next."""

import shlex
from pathlib import Path
from typing import Any

from gpurobot.config import TrainConfig, code_keys, to_dict
from gpurobot.learn.algorithm import Algorithm
from gpurobot.run import checkpoint
from gpurobot.run.output import aligned
from gpurobot.run.returns import WINDOW, Returns

FILE = "summary.json"
EXTREMES = ("reward/min", "reward/max")  # columns of the reward that are no terms of it


def content(
  config: TrainConfig, learner: Algorithm, seconds: float, row: dict[str, float], returns: Returns
) -> dict[str, Any]:
  """Return what summary.json says of a run after `seconds` of training whose last row is `row`."""
  return {
    **{key: getattr(config, key) for key in ("task", "seed", "num_envs")},
    "iterations": learner.iteration,
    "steps": learner.steps,
    "seconds": seconds,
    "steps_per_second": learner.steps / seconds,
    "return": returns.last,
    "best_return": returns.best,
    "length": row.get("length"),
    "reached_seconds": returns.reached,
    "training": learner.describe(),
  }


def lines(
  config: TrainConfig, summary: dict[str, Any], row: dict[str, float], returns: Returns, folder: Path
) -> list[str]:
  """Return the summary as text: the run, its returns, its warnings, and the commands that come next."""
  speed = f"{summary['steps_per_second']:,.0f} steps/s"
  told = [f"{folder}: {summary['steps']:,} steps in {duration(summary['seconds'])}, {speed}"]
  rows = [("return", _return(returns, row))]
  if row.get("success", -1.0) >= 0:  # it is nan for a task without success
    rows.append(("success", f"{row['success']:.1%} of the last episodes"))
  if summary["warnings"]:
    rows.append(("warnings", f"{len(summary['warnings'])}, listed in {folder / FILE}"))
  kept = checkpoint.kept(folder)
  rows += [("best" if path.name == checkpoint.BEST else "saved", str(path)) for path in kept]
  if checkpoint.exists(folder):
    rows += commands(config, folder)
  return told + [f"  {line}" for line in aligned(rows)]


def _return(returns: Returns, row: dict[str, float]) -> str:
  """Return the mean return of a run; before one is known, the last row's mean reward per step."""
  if returns.last is None:
    terms = [value for name, value in row.items() if name.startswith("reward/") and name not in EXTREMES]
    rest = f"; mean reward {sum(terms):,.3g} per step" if terms else ""
    return f"none yet, as the first episode of each environment does not count{rest}"
  best = ""
  if returns.best is not None:
    best = f"best {returns.best:,.2f} of {WINDOW} or more episodes, at {returns.best_steps:,} steps"
  return ", ".join(filter(None, (f"{returns.last:,.2f}", best, returns.heading)))


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
