"""Crash test of ranks: python -m benchmarks.failures [failures=10] [key=value ...] for `train.py`.

It kills one of two ranks under `torchrun --max-restarts`, at a random moment after each new checkpoint; then
both ranks restart. At the end, `name: value` lines report the differences from an uninterrupted training.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from signal import SIGKILL, SIGTERM

from benchmarks.crashes import (
  MORE,
  POLL,
  WORDS,
  differences,
  iterations,
  train_arguments,
  unreadable,
  wait_for_checkpoint,
)
from benchmarks.report import line

ROOT = Path(__file__).parents[1]
FAILURES = 10
WAIT = 2.0  # longest time from a checkpoint until a rank is killed [s]


def torchrun(folder: Path, words: Sequence[str], restarts: int = 0) -> subprocess.Popen[bytes]:
  """Start or resume a training with two ranks; their output goes to a file beside the folder."""
  command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
  command += [f"--max-restarts={restarts}", str(ROOT / "train.py"), *train_arguments(folder, words)]
  with folder.with_suffix(".txt").open("a") as output:
    return subprocess.Popen(command, stdout=output, stderr=output, env=os.environ | {"OMP_NUM_THREADS": "1"})


def ranks(job: subprocess.Popen[bytes]) -> list[int]:
  """Return the process ids of torchrun's ranks."""
  threads = Path(f"/proc/{job.pid}/task").glob("*/children")
  return sorted(int(child) for thread in threads for child in thread.read_text().split())


def kill(folder: Path, words: Sequence[str], failures: int) -> int:
  """Kill ranks of a training, then terminate it; return the number of unreadable checkpoints found."""
  chance, damaged = random.Random(failures), 0
  job = torchrun(folder, words, failures)
  for _ in range(failures):
    wait_for_checkpoint(folder, lambda: job.poll() is None)
    time.sleep(chance.uniform(0, WAIT))
    attempt = ranks(job)
    os.kill(chance.choice(attempt), SIGKILL)
    while set(attempt) & set(ranks(job)) and job.poll() is None:
      time.sleep(POLL)
    damaged += unreadable(folder)
  wait_for_checkpoint(folder, lambda: job.poll() is None)
  job.send_signal(SIGTERM)
  job.wait()
  return damaged


def compare(folder: Path, words: Sequence[str], failures: int) -> dict[str, int]:
  """Kill ranks, let the training end, and compare it with an uninterrupted training."""
  killed, whole = folder / "killed", folder / "whole"
  counts = {"failures": failures, "unreadable": kill(killed, words, failures)}
  end = iterations(killed) + MORE
  for run in (killed, whole):
    if torchrun(run, [*words, f"max_iterations={end}"]).wait():
      raise RuntimeError(run.with_suffix(".txt").read_text())
  tensors, rows = differences(killed, whole)
  return counts | {"iterations": end, "different_tensors": tensors, "different_rows": rows}


def run(argv: Sequence[str] = ()) -> None:
  """Kill, compare and report."""
  own = [word for word in argv if word.startswith("failures=")]
  failures = int(own[-1].removeprefix("failures=")) if own else FAILURES
  words = [*WORDS, *(word for word in argv if word not in own)]
  with tempfile.TemporaryDirectory() as folder:
    for name, value in compare(Path(folder), words, failures).items():
      line(f"failures.{name}", value)


if __name__ == "__main__":
  run(sys.argv[1:])
