"""Tables of README.md and docs/, generated from the saved results.

`python -m benchmarks.table` rewrites each table between `<!-- NAME -->` and `<!-- end of NAME -->`.
"""

import math
import re
import statistics
from collections.abc import Callable
from pathlib import Path

from benchmarks import cases, report, result_rows
from benchmarks.cameras.rendering import KINDS, SCENES
from benchmarks.cameras.training import PAIRS
from benchmarks.learning import curves
from benchmarks.markdown import Figures, grid, markdown, text
from benchmarks.training.memory_per_env import OWN

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"


def read() -> dict[str, float]:
  """Return all figures in docs/results, and the times at which the curves met their goals, by name."""
  figures: dict[str, float] = {}
  for path in sorted(RESULTS.rglob("*.txt")):
    figures |= report.read(path.read_text())
  for curve in cases.CURVES:
    for seed, rows in zip(curve.seeds, curves.read(curve), strict=False):
      for goal in curve.goals:
        figures[f"curve.{curve.task}.{seed}.seconds_to_{goal.level:g}"] = curves.reached(rows, goal)
  return figures


def results(figures: Figures) -> str:
  """Return the table of results with goals and commands."""
  table = [["", "measured", "goal", "command"]]
  for row in result_rows.ROWS:
    if figures.keys() >= {*row.figures}:
      measured = [figures[name] for name in row.figures]
      values = " / ".join("not" if math.isinf(value) else text(value) for value in measured)
      table.append([row.what, values + row.unit, row.goal, row.command and f"`{row.command}`"])
  return markdown(table)


def physics(figures: Figures) -> str:
  """Return the table of the speeds of both engines in each case, on one thread."""
  columns = {
    "gpurobot": "gpurobot [substeps/s]",
    "mujoco": "MuJoCo C [substeps/s]",
    "ratio": "ratio",
  }
  rows = {f"{case.name}.threads1": case.name for case in cases.PHYSICS}
  return grid(figures, "physics", {"": "case, one thread", **columns}, rows)


def tasks(figures: Figures) -> str:
  """Return the table of training results of each task."""
  heads = ["task", "", "goal", "after", "at the end", "evaluated", "seeds", "steps", "time, threads"]
  table = [heads]
  for curve in cases.CURVES:
    runs = curves.read(curve)
    if runs:
      goals: list[cases.Goal | None] = [*curve.goals]
      if curve.shown not in [goal.column for goal in curve.goals]:
        goals.append(None)
      table += [_training(curve, runs, goal, figures) for goal in goals]
  return markdown(table)


def _training(
  curve: cases.Curve, runs: list[curves.Rows], goal: cases.Goal | None, figures: Figures
) -> list[str]:
  """Return the row of a goal of a task, or with None the row of the column that the curve compares."""
  column = goal.column if goal else curve.shown
  ends = [curves.last(rows, column) for rows in runs]
  half = curves.interval(ends)
  final = [rows[-1] for rows in runs]
  seconds = statistics.mean(row["seconds"] for row in final)
  return [
    f"`{curve.task}`",
    column.replace("_", " "),
    f"{'>=' if goal.least else '<='} {text(goal.level)} in {_time(goal.seconds)}" if goal else "",
    " / ".join(_reached(rows, goal) for rows in runs) if goal else "",
    text(statistics.mean(ends)) + ("" if math.isnan(half) else f" +- {text(half)}"),
    _evaluated(curve, column, figures) if goal is None or goal.evaluated else "",
    str(len(runs)),
    f"{statistics.mean(row['steps'] for row in final) / 1e6:.3g} M",
    f"{seconds / 60:.3g} min on {final[0]['threads']:g}",
  ]


def _time(seconds: float) -> str:
  """Return a time limit as text, in seconds or minutes."""
  return f"{seconds:g} s" if seconds < 60 else f"{seconds / 60:g} min"


def _evaluated(curve: cases.Curve, column: str, figures: Figures) -> str:
  """Return the evaluated value of a column in both engines, as far as there is one."""
  names = [f"transfer.{curve.task}.{engine}.{column}" for engine in ("own", curve.engine)]
  return " / ".join(text(figures[name]) for name in names if name in figures)


def algorithms(_figures: Figures) -> str:
  """Return the table of the environment steps and the time after which each algorithm reaches a level."""
  names = (curves.PPO, *cases.OFF_POLICY)
  table = [["task", "level", *(name.upper() for name in names), "seeds"]]
  for task, goal in cases.LEVELS.items():
    (curve,) = (curve for curve in cases.CURVES if curve.task == task)
    level = f"{goal.column.replace('_', ' ')} {'>=' if goal.least else '<='} {text(goal.level)}"
    runs = [curves.read(curve, name) for name in names]
    cells = [progress(each, goal) for each in runs]
    table.append([f"`{task}`", level, *cells, " / ".join(str(len(each)) for each in runs)])
  return markdown(table)


def progress(runs: list[curves.Rows], goal: cases.Goal) -> str:
  """Return the steps and the time at which each seed reached a goal, or the best that it has reached."""
  best = max if goal.least else min
  texts = []
  for rows in runs:
    steps, seconds = (curves.reached(rows, goal, column) for column in ("steps", "seconds"))
    found = [row[goal.column] for row in rows if math.isfinite(row[goal.column])]
    if math.isfinite(steps):
      texts.append(f"{_steps(steps)}, {seconds:.0f} s")
    else:
      texts.append(f"not in {_steps(rows[-1]['steps'])} ({text(best(found))})")
  return "; ".join(texts) or "missing"


def _steps(value: float) -> str:
  return f"{value / 1e6:.3g} M"


def _reached(rows: curves.Rows, goal: cases.Goal) -> str:
  """Return the training time at which a goal was met, and in brackets the processor time if it was kept."""
  seconds = curves.reached(rows, goal)
  if not math.isfinite(seconds):
    return "not"
  used = curves.reached(rows, goal, curves.PROCESSOR) if curves.PROCESSOR in rows[0] else math.nan
  return f"{seconds:.0f} s" + (f" ({used:.0f} s)" if math.isfinite(used) else "")


def environments(figures: Figures) -> str:
  """Return the table of memory per environment in training."""
  heads = {
    "": "task",
    "simulation_bytes": "bytes of the simulation",
    "bytes": "bytes in all",
    "per_gb": "environments per GB",
  }
  return grid(figures, "environments", heads, {task: f"`{task}`" for task in OWN})


def camera(figures: Figures) -> str:
  """Return the table of images per second beside MuJoCo's renderer."""
  heads = {
    "": "scene, 64 x 64",
    "images": "images/s",
    "mujoco_images": "MuJoCo",
    "ratio": "ratio",
    "core_images": "images per second of a core",
    "mujoco_core_images": "MuJoCo",
    "core_ratio": "ratio",
  }
  rows = {f"{scene}_{kind}": f"{scene}, {kind}" for kind in KINDS for scene in SCENES}
  return grid(figures, "camera", heads, rows)


def camera_cost(figures: Figures) -> str:
  """Return the table of environment steps per second of a core with a camera and without."""
  heads = {
    "": "task, what",
    "core_steps": "steps per second of a core",
    "core_steps_without": "without the camera",
    "share": "share",
  }
  rows = {f"{task}.{what}": f"`{task}`, {what}" for what in ("environments", "training") for task in PAIRS}
  return grid(figures, "camera_cost", heads, rows)


BLOCKS: dict[str, tuple[str, Callable[[Figures], str]]] = {
  "results": ("docs/benchmarks.md", results),
  "physics": ("docs/benchmarks.md", physics),
  "environments": ("docs/gpu.md", environments),
  "camera": ("docs/cameras.md", camera),
  "camera_cost": ("docs/cameras.md", camera_cost),
  "tasks": ("docs/task_results.md", tasks),
  "algorithms": ("docs/off_policy.md", algorithms),
}


def pages() -> dict[Path, str]:
  """Return the pages with updated tables, by path."""
  figures = read()
  texts = {ROOT / page: (ROOT / page).read_text() for page, _ in BLOCKS.values()}
  for name, (page, block) in BLOCKS.items():
    marks = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", re.DOTALL)
    texts[ROOT / page] = marks.sub(f"{block(figures)}\n", texts[ROOT / page])
  return texts


if __name__ == "__main__":
  for path, page in pages().items():
    path.write_text(page)
