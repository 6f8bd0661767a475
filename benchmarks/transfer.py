"""Speed of a trained Ant here and in MuJoCo C: `python -m benchmarks.transfer [checkpoint=<run folder>]`."""

import subprocess
import sys
from pathlib import Path

from benchmarks.report import line

ROOT = Path(__file__).parents[1]
EPISODES = 100
CURVE = "checkpoint=runs/curves/ant/0"  # what benchmarks.curves has trained


def evaluate(checkpoint: str, engine: str) -> dict[str, float]:
  """Return the figures that `gpurobot.evaluate` prints."""
  words = [checkpoint, f"episodes={EPISODES}", f"engine={engine}"]
  command = [sys.executable, "-m", "gpurobot.evaluate", *words]
  done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
  return {name: float(value) for name, value in (row.split(": ") for row in done.stdout.splitlines())}


def run(checkpoint: str = CURVE) -> None:
  """Print return and forward speed [m/s] in both engines, and the speeds' relative difference."""
  found = {engine: evaluate(checkpoint, engine) for engine in ("own", "mujoco")}
  for engine, values in found.items():
    line(f"transfer.{engine}.return", values["return"])
    line(f"transfer.{engine}.forward_speed", values["forward_speed"])
  own, mujoco = (found[engine]["forward_speed"] for engine in ("own", "mujoco"))
  line("transfer.speed_difference", abs(mujoco / own - 1))


if __name__ == "__main__":
  run(*sys.argv[1:])
