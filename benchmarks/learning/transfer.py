"""Evaluation of trained policies in two engines: `python -m benchmarks.learning.transfer task ...`.

Each seed that `benchmarks.learning.curves` trained is evaluated in this engine and in the second engine of
its curve, MuJoCo C or Gymnasium's own environment. Means over the seeds are saved in
docs/results/transfer/<task>.txt. A seed without a run folder is left out with a warning, and the file says
how many there were.
"""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import cases
from benchmarks.learning.curves import run_folder
from benchmarks.report import line

ROOT = Path(__file__).parents[2]
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


def trained(curve: cases.Curve) -> list[Path]:
  """Return the run folders of the seeds that there are; exit if there is none."""
  folders = [run_folder(curve.task, seed) for seed in curve.seeds]
  for folder in folders:
    if not folder.exists():
      print(f"warning: there is no run {folder}, so its seed is left out", file=sys.stderr)
  return [folder for folder in folders if folder.exists()] or sys.exit(f"no seed of {curve.task} has a run")


def compare(curve: cases.Curve) -> None:
  """Print the means over the seeds in both engines, and the relative difference of the compared column."""
  folders = trained(curve)
  means: dict[str, float] = {"seeds": len(folders)}
  for engine in ("own", curve.engine):
    found = [evaluate(folder, engine) for folder in folders]
    for figure in found[0]:
      means[f"{engine}.{figure}"] = sum(each[figure] for each in found) / len(found)
  for name, mean in means.items():
    line(f"transfer.{curve.task}.{name}", mean)
  own, other = (means[f"{engine}.{curve.shown}"] for engine in ("own", curve.engine))
  line(f"transfer.{curve.task}.difference", abs(other / own - 1))


def run(names: Sequence[str]) -> None:
  """Write the comparison of each named task, once it is complete."""
  FOLDER.mkdir(parents=True, exist_ok=True)
  for curve in cases.CURVES:
    if curve.task in names:
      with contextlib.redirect_stdout(io.StringIO()) as printed:
        compare(curve)
      (FOLDER / f"{curve.task.replace('/', '-')}.txt").write_text(printed.getvalue())


if __name__ == "__main__":
  run(sys.argv[1:])
