"""Measurements and tests on a GPU: python -m benchmarks.gpu [step ...].

Without a step, the program lists all of them, those that tell most first. It prints the output of their
commands, and keeps it in runs/gpu/<step>.txt. The exit status is the number of commands that failed.
"""

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.cases import ISAAC_ANT
from benchmarks.report import check_names

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "runs" / "gpu"
# In each of its processes, CUDA reserves up to 10 GB for the stacks of kernel threads.
TEST = "-m pytest -q -p no:cacheprovider --device=cuda:0 -n 5 --dist loadgroup"
ITERATION = " ".join(["-m benchmarks.training.iteration", *ISAAC_ANT])


class Step(NamedTuple):
  """Step of the program: a description, an estimated duration, and arguments of Python to run."""

  description: str
  minutes: float
  commands: Sequence[str]


STEPS = {
  "graphs": Step(
    "tests of CUDA graphs: each part of an iteration is recorded, never synchronises, agrees with a CPU",
    6,
    [f"{TEST} tests/gpu tests/gpurobot/device/test_clock.py"],
  ),
  "iteration": Step(
    "iteration of 16,384 Ants, compiled and not, and of a million: speed, kernels, memory",
    7,
    [
      f"{ITERATION} num_envs=16384",
      f"{ITERATION} num_envs=16384 compile=off",
      f"{ITERATION} num_envs=1048576 ppo.horizon=4",
    ],
  ),
  "physics": Step(
    "physics, 4,096 to 1,048,576 environments",
    1,
    [
      "-m benchmarks.gpu.physics",
      "-m benchmarks.gpu.physics cases=[ant] num_envs=[1048576]",
    ],
  ),
  "mujoco_warp": Step(
    "physics beside mujoco_warp",
    8,
    ["-m benchmarks.gpu.physics beside=true cases=[ant,humanoid_heap,arm_and_cube_on_table]"],
  ),
  "learn": Step(
    "trainings with the settings of each task",
    14,
    [
      f"train.py run_dir=runs/gpu/{task} task={task} max_seconds={seconds} {words}"
      for task, seconds, words in (
        ("ant", 20, "num_envs=16384 profile=true"),
        ("humanoid", 75, ""),
        ("quadruped_rough", 180, ""),
        ("cube_stack", 180, ""),
        ("hand_cube", 180, ""),
      )
    ],
  ),
  "memory": Step("memory per environment of each task", 5, ["-m benchmarks.training.memory_per_env"]),
  "tests": Step("tests of tasks and physics", 20, [f"{TEST} tests/tasks", f"{TEST} tests/physics"]),
}


def run(names: Sequence[str]) -> int:
  """Run the named steps, or list all; return the number of commands that failed."""
  check_names(names, STEPS)
  if not names:
    for name, step in STEPS.items():
      print(f"{name:<14}{step.minutes:>4g} min  {step.description}")
  FOLDER.mkdir(parents=True, exist_ok=True)
  return sum(_run(command, FOLDER / f"{name}.txt") for name in names for command in STEPS[name].commands)


def _run(command: str, output: Path) -> bool:
  """Print and keep what a command prints; return whether it failed."""
  words = [sys.executable, "-u", *shlex.split(command)]
  with (
    output.open("a") as file,
    subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
  ):
    for row in process.stdout or ():
      print(row, end="", flush=True)
      print(row, end="", file=file, flush=True)
  return process.returncode != 0


if __name__ == "__main__":
  sys.exit(run(sys.argv[1:]))
