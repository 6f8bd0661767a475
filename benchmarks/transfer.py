"""Evaluation of trained policies in two engines: `python -m benchmarks.transfer task ...`.

Each seed that `benchmarks.curves` trained is evaluated in this engine and in the second engine of its curve,
MuJoCo C or Gymnasium's own environment. Means over the seeds are saved in docs/results/transfer/<task>.txt.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import cases
from benchmarks.curves import run_folder
from benchmarks.report import line

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "results" / "transfer"
EPISODES = 100


def evaluate(checkpoint: Path, engine: str) -> dict[str, float]:
  """Return the figures of `gpurobot.evaluate` by name, and half the width of their intervals."""
  with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "figures.json"
    words = [str(checkpoint), f"episodes={EPISODES}", f"engine={engine}", f"json={file}"]
    command = [sys.executable, "-m", "gpurobot.evaluate", *words]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    content = json.loads(file.read_text())
  found = {"episodes": content["episodes"]}
  for name, figure in content[engine].items():
    found |= {name: figure["value"], f"{name}_interval_95": figure["interval_95"]}
  return found


def compare(curve: cases.Curve) -> None:
  """Print the means over the seeds in both engines, and the relative difference of the compared column."""
  means: dict[str, float] = {}
  for engine in ("own", curve.engine):
    found = [evaluate(run_folder(curve.task, seed), engine) for seed in curve.seeds]
    for figure in found[0]:
      means[f"{engine}.{figure}"] = sum(each[figure] for each in found) / len(found)
  for name, mean in means.items():
    line(f"transfer.{curve.task}.{name}", mean)
  own, other = (means[f"{engine}.{curve.shown}"] for engine in ("own", curve.engine))
  line(f"transfer.{curve.task}.difference", abs(other / own - 1))


def run(names: Sequence[str]) -> None:
  """Write the comparison of each named task."""
  FOLDER.mkdir(parents=True, exist_ok=True)
  for curve in cases.CURVES:
    if curve.task in names:
      with (
        (FOLDER / f"{curve.task.replace('/', '-')}.txt").open("w") as file,
        contextlib.redirect_stdout(file),
      ):
        compare(curve)


if __name__ == "__main__":
  run(sys.argv[1:])
