"""Weak scaling of training Ant: two single-threaded ranks with twice the environments of one rank.

`python -m benchmarks training.scaling` prints `name: value` lines. The measurements alternate, with each rank
on its own core. Other programs on these cores invalidate the results.
"""

import functools
import os
import statistics
import sys

import train
from benchmarks import cases
from benchmarks.report import compare
from benchmarks.training import fused

ENVS = 2048  # environments per rank
ITERATIONS = 40  # iterations per run
TURNS = 3


def speed(ranks: int) -> float:
  """Train with `ranks` ranks; return the median of the logged speeds after the first row [steps/s]."""
  command = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}", "-m"]
  command += ["benchmarks.training.scaling", *cases.ISAAC_ANT, "threads=1", f"num_envs={ENVS * ranks}"]
  rows = fused.logged(*command, f"max_iterations={ITERATIONS}", OMP_NUM_THREADS="1")
  return statistics.median(row["steps_per_second"] for row in rows[1:])


def run() -> None:
  """Print both speeds [environment steps/s] and their ratio, as medians over the turns."""
  fused.build([*cases.ISAAC_ANT, "threads=1"])
  runs = {"two_ranks": functools.partial(speed, 2), "one_rank": functools.partial(speed, 1)}
  compare("scaling", runs, TURNS)


def be_rank(words: list[str]) -> None:
  """Train as one of torchrun's ranks, on the core with its index."""
  cores = sorted(os.sched_getaffinity(0))
  os.sched_setaffinity(0, {cores[int(os.environ["LOCAL_RANK"])]})
  train.main(words)


if __name__ == "__main__":
  if "LOCAL_RANK" not in os.environ:
    sys.exit("error: this is one rank: run `python -m benchmarks training.scaling`")
  be_rank(sys.argv[1:])
