"""Weak scaling of training Ant: two single-threaded ranks with twice the environments of one rank.

`python -m benchmarks training.scaling` prints `name: value` lines. The measurements alternate, with each rank
on its own core. Other programs on these cores invalidate the results.
"""

import csv
import functools
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import train
from benchmarks import cases
from benchmarks.report import compare, line
from benchmarks.training import fused

ENVS = 2048  # environments per rank
ITERATIONS = 40  # iterations per run
TURNS = 3
GOAL = 1.85  # goal for the speed of two ranks, relative to one rank


def speed(ranks: int) -> float:
  """Train with `ranks` ranks; return the median of the logged speeds after the first row [steps/s]."""
  with tempfile.TemporaryDirectory() as folder:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}"]
    command += [
      "-m",
      "benchmarks.training.scaling",
      *cases.ISAAC_ANT,
      "threads=1",
      f"num_envs={ENVS * ranks}",
    ]
    command += [f"max_iterations={ITERATIONS}", "log_every=5", f"run_dir={folder}/run"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    with Path(folder, "run", "metrics.csv").open() as file:
      return statistics.median([float(row["steps_per_second"]) for row in csv.DictReader(file)][1:])


def run() -> None:
  """Print both speeds [environment steps/s] and their ratio, as medians over the turns."""
  fused.build([*cases.ISAAC_ANT, "threads=1"])
  line("scaling.num_envs_of_each_rank", ENVS)
  runs = {"two_ranks": functools.partial(speed, 2), "one_rank": functools.partial(speed, 1)}
  compare("scaling", runs, TURNS)
  line("scaling.goal", GOAL)


def be_rank(words: list[str]) -> None:
  """Train as one of torchrun's ranks, on the core with its index."""
  cores = sorted(os.sched_getaffinity(0))
  os.sched_setaffinity(0, {cores[int(os.environ["LOCAL_RANK"])]})
  train.main(words)


if __name__ == "__main__":
  if "LOCAL_RANK" not in os.environ:
    sys.exit("error: this is one rank: run `python -m benchmarks training.scaling`")
  be_rank(sys.argv[1:])
