"""Time to the first step of a robot: kernels built with an empty cache, then loaded by a second process."""

import os
import subprocess
import sys
import tempfile

from benchmarks import cases
from benchmarks.report import line

PROGRAM = """
import sys, time
import physics
from benchmarks.physics import models
start = time.perf_counter()
sim = physics.Simulation(models.load(sys.argv[1]), num_envs=64)
sim.step()
sim.forward()
print(time.perf_counter() - start)
"""


def seconds(robot: str, cache: str) -> float:
  """Return the time of a new process from the model to the first step [s], with kernels in `cache`."""
  environment = {**os.environ, "WARP_CACHE_PATH": cache}
  command = [sys.executable, "-c", PROGRAM, robot]
  done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
  return float(done.stdout.split()[-1])


def run() -> None:
  """Print the times with an empty cache and with a filled one."""
  for robot in cases.KERNELS:
    with tempfile.TemporaryDirectory() as cache:
      line(f"kernel.{robot}.build_seconds", seconds(robot, cache))
      line(f"kernel.{robot}.load_seconds", seconds(robot, cache))
