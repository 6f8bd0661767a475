"""Crash test of training: python -m benchmarks.crashes [kills=100] [key=value ...] for `train.py`.

It kills a training at random moments and resumes it each time. At the end, `name: value` lines report the
differences from an uninterrupted training. `python -m benchmarks.failures` does the same with ranks.
"""

import csv
import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch
from torch.utils._pytree import tree_leaves

import train
from benchmarks.report import line
from gpurobot.run import checkpoint
from gpurobot.run.files import PART

WORDS = ["task=cartpole", "num_envs=64", "threads=1", "checkpoint_seconds=0", "log_every=1"]
HALF = f"{checkpoint.NAME}{PART}"  # partial file of an interrupted checkpoint
KILLS = 100
MORE = 5  # iterations after the last kill
LIFE = 4.0  # longest life of a process, relative to the time from a resume to its first iteration
POLL = 0.01  # polling interval [s]
# Columns of the log that depend on the machine.
CLOCKED = re.compile(r"time/|(steps_per_)?second|memory/|utilisation|collectives")
FORKS = multiprocessing.get_context("forkserver")  # its processes have torch already imported
FORKS.set_forkserver_preload(["train", "tasks.cartpole"])


def train_arguments(folder: Path, words: Sequence[str]) -> list[str]:
  """Return arguments for `train.py` that start a training in a folder, or resume the one there."""
  return [*words, f"resume={folder}" if checkpoint.exists(folder) else f"run_dir={folder}"]


def start(folder: Path, words: Sequence[str]) -> BaseProcess:
  """Start or resume a training in a process; its output goes to a file beside the folder."""
  process = FORKS.Process(target=_train, args=(train_arguments(folder, words), folder.with_suffix(".txt")))
  process.start()
  return process


def _train(words: list[str], output: Path) -> None:
  with output.open("a") as file:
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
  sys.exit(train.main(words))


def written(folder: Path, name: str = checkpoint.NAME) -> int:
  """Return the modification time of the checkpoint of a run, or of another file [ns]; 0: no such file."""
  return max((path.stat().st_mtime_ns for path in folder.glob(name)), default=0)


def wait_for_checkpoint(folder: Path, runs: Callable[[], bool]) -> None:
  """Wait until a training has written a checkpoint; raise RuntimeError if it ends first."""
  before = written(folder)
  while written(folder) == before:
    if not runs():
      output = folder.with_suffix(".txt")
      said = output.read_text() if output.exists() else "it said nothing"
      raise RuntimeError(f"the training in '{folder}' has ended: {said}")
    time.sleep(POLL)


def unreadable(folder: Path) -> int:
  """Return the number of unreadable checkpoints in a run folder; print the errors."""
  count = 0
  for path in folder.glob("*.pt"):
    try:
      checkpoint.load(path)
    except checkpoint.CheckpointError as error:
      print(error)
      count += 1
  return count


def iterations(folder: Path) -> int:
  """Return the number of iterations in the last checkpoint."""
  return int(checkpoint.read(folder)["learner"]["iteration"])


def differences(one: Path, other: Path) -> tuple[int, int]:
  """Return the numbers of checkpoint tensors and of log rows that are not bit-equal between two runs."""
  tensors = [
    [leaf for leaf in tree_leaves(checkpoint.read(folder)["learner"]) if isinstance(leaf, torch.Tensor)]
    for folder in (one, other)
  ]
  rows = [_rows(folder) for folder in (one, other)]
  apart = sum(a.numpy().tobytes() != b.numpy().tobytes() for a, b in zip(*tensors, strict=True))
  return apart, sum(a != b for a, b in zip(*rows, strict=True))


def _rows(folder: Path) -> list[list[str]]:
  """Return the rows of the log, without the columns that depend on the machine."""
  with (folder / "metrics.csv").open(newline="") as file:
    rows = list(csv.DictReader(file))
  return [[value for name, value in row.items() if not CLOCKED.match(name)] for row in rows]


def kill(folder: Path, words: Sequence[str], kills: int) -> dict[str, int]:
  """Kill and resume a training repeatedly; return counts of notable events."""
  moments = random.Random(kills)
  counts = {"before_the_first_iteration": 0, "while_saving": 0, "unreadable": 0}
  process = start(folder, words)
  wait_for_checkpoint(folder, process.is_alive)
  process.kill()
  process.join()
  began, process = time.monotonic(), start(folder, words)
  for _ in ("at the start", "after an iteration"):
    wait_for_checkpoint(folder, process.is_alive)
  life = LIFE * (time.monotonic() - began)
  done = 0  # iterations
  for _ in range(kills):
    half_before = written(folder, HALF)
    time.sleep(moments.uniform(0, life))
    process.kill()
    process.join()
    before, done = done, iterations(folder)
    counts["before_the_first_iteration"] += done == before
    counts["while_saving"] += written(folder, HALF) > half_before
    counts["unreadable"] += unreadable(folder)
    process = start(folder, words)
  wait_for_checkpoint(folder, process.is_alive)
  process.terminate()
  process.join()
  return counts


def compare(folder: Path, words: Sequence[str], kills: int) -> dict[str, int]:
  """Kill a training repeatedly, let it end, and compare it with an uninterrupted training."""
  killed, whole = folder / "killed", folder / "whole"
  counts = {"kills": kills, **kill(killed, words, kills)}
  end = iterations(killed) + MORE
  for run in (killed, whole):
    process = start(run, [*words, f"max_iterations={end}"])
    process.join()
    if process.exitcode:
      raise RuntimeError(run.with_suffix(".txt").read_text())
  tensors, rows = differences(killed, whole)
  return counts | {"iterations": end, "different_tensors": tensors, "different_rows": rows}


def run(argv: Sequence[str] = ()) -> None:
  """Kill, compare and report."""
  own = [word for word in argv if word.startswith("kills=")]
  kills = int(own[-1].removeprefix("kills=")) if own else KILLS
  words = [*WORDS, *(word for word in argv if word not in own)]
  with tempfile.TemporaryDirectory() as folder:
    for name, value in compare(Path(folder), words, kills).items():
      line(f"crashes.{name}", value)


if __name__ == "__main__":
  run(sys.argv[1:])
