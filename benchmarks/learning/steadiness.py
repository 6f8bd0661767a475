"""Steadiness of quadrupeds by reward weights: `python -m benchmarks.learning.steadiness [key=value ...]`.

It trains a policy for each row of WEIGHTS into runs/steadiness/, but where a run is there, and prints the
table of docs/bring_robot.md. The arguments are further settings of the training.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.markdown import markdown, text

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "runs" / "steadiness"
TRAINING = ("task=quadruped", "seed=0", "threads=1", "max_steps=6000000", "env.see_velocity=false")
EPISODES = 64
WEIGHTS = {  # changes of the weights' defaults by row
  "default": {},
  "change x 5": {"change": -0.05},
  "effort x 5": {"effort": -1e-3},
  "slip x 10": {"slip": -0.3},
}
COLUMNS = {
  "velocity_error": "velocity error [m/s]",
  "action_change": "action change",
  "action_jerk": "action jerk",
  "fastest_joint": "fastest joint [rad/s]",
  "power": "power [W]",
  "transport_cost": "cost of transport",
  "foot_slip": "slip [m/s]",
  "foot_impact": "impact",
  "base_jitter": "jitter [rad/s^2]",
}


def run(*words: str) -> None:
  """Run a program of gpurobot."""
  subprocess.run([sys.executable, "-m", "gpurobot", *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def figures(row: str, further: Sequence[str]) -> dict[str, float]:
  """Return the figures of the policy of a row, which is trained if it has no run."""
  folder = RUNS / row.replace(" ", "_")
  file = folder / "figures.json"
  weights = [f"env.reward_{name}={weight}" for name, weight in WEIGHTS[row].items()]
  if not (folder / "summary.json").exists():
    run("train", *TRAINING, *weights, *further, f"run_dir={folder}")
  if not file.exists():
    run("evaluate", str(folder), f"episodes={EPISODES}", f"json={file}")
  return {name: figure["value"] for name, figure in json.loads(file.read_text())["own"].items()}


def main(further: Sequence[str]) -> None:
  """Print the table, a row after the other."""
  table = [["reward weights", *COLUMNS.values()]]
  for row in WEIGHTS:
    found = figures(row, further)
    table.append([row, *(text(found[name]) for name in COLUMNS)])
    print(markdown(table[:1] + table[-1:]).splitlines()[-1], flush=True)
  print("\n" + markdown(table))


if __name__ == "__main__":
  main(sys.argv[1:])
