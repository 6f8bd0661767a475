"""Seconds until the first step of Ant: kernels built into an empty cache, then loaded by the next process."""

import os
import subprocess
import sys
import tempfile

from benchmarks.report import line

PROGRAM = """
import time
import physics, tasks.ant
start = time.perf_counter()
sim = physics.Simulation(physics.load_model(tasks.ant.Task.robot), num_envs=64)
sim.step()
sim.forward()
print(time.perf_counter() - start)
"""


def seconds(cache: str) -> float:
  """Return how long a new process takes from the model to the first step, with kernels kept in `cache`."""
  environment = {**os.environ, "WARP_CACHE_PATH": cache}
  command = [sys.executable, "-c", PROGRAM]
  done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
  return float(done.stdout.split()[-1])


def run() -> None:
  """Print the seconds with an empty cache and with a filled one."""
  with tempfile.TemporaryDirectory() as cache:
    line("kernel.ant.build_seconds", seconds(cache))
    line("kernel.ant.load_seconds", seconds(cache))


if __name__ == "__main__":
  run()
