"""Kill a training at random moments: python -m benchmarks.crashes [kills=100] [key=value ...] for `train.py`.

Each time it is resumed, at the end beside one that nothing interrupted; `name: value` lines say what differs.
`python -m benchmarks.failures` does so with ranks.
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
HALF = f"{checkpoint.NAME}{PART}"  # what is left of a checkpoint in the writing
KILLS = 100
MORE = 5  # iterations after the last kill
LIFE = 4.0  # a process lives for so many times what one that resumes takes to its first iteration, at most
POLL = 0.01  # [s]
CLOCKED = re.compile(r"time/|(steps_per_)?second|memory/|utilisation|collectives")  # columns of the machine
FORKS = multiprocessing.get_context("forkserver")  # processes that have torch at once
FORKS.set_forkserver_preload(["train", "tasks.cartpole"])


def place(folder: Path, words: Sequence[str]) -> list[str]:
  """Return words for `train.py` to start in a folder, or to continue there."""
  return [*words, f"resume={folder}" if checkpoint.exists(folder) else f"run_dir={folder}"]


def start(folder: Path, words: Sequence[str]) -> BaseProcess:
  """Start or continue a training as a process; what it prints goes to a file beside the folder."""
  process = FORKS.Process(target=_train, args=(place(folder, words), folder.with_suffix(".txt")))
  process.start()
  return process


def _train(words: list[str], output: Path) -> None:
  with output.open("a") as file:
    os.dup2(file.fileno(), 1)
    os.dup2(file.fileno(), 2)
  sys.exit(train.main(words))


def written(folder: Path, name: str = checkpoint.NAME) -> int:
  """Return when the checkpoint of a run, or another file, was written [ns]; 0: never."""
  return max((path.stat().st_mtime_ns for path in folder.glob(name)), default=0)


def wait_for_checkpoint(folder: Path, runs: Callable[[], bool]) -> None:
  """Wait until a training has written a checkpoint; raise RuntimeError where it ends before."""
  before = written(folder)
  while written(folder) == before:
    if not runs():
      raise RuntimeError(f"the training in '{folder}' has ended")
    time.sleep(POLL)


def unreadable(folder: Path) -> int:
  """Return how many checkpoints of a run folder cannot be read, and print why."""
  count = 0
  for path in folder.glob("*.pt"):
    try:
      checkpoint.load(path)
    except checkpoint.CheckpointError as error:
      print(error)
      count += 1
  return count


def iterations(folder: Path) -> int:
  """Return the iterations until the last checkpoint."""
  return int(checkpoint.read(folder)["learner"]["iteration"])


def differences(one: Path, other: Path) -> tuple[int, int]:
  """Return how many tensors of two runs' checkpoints, and rows of their logs, are not the same bit by bit."""
  tensors = [
    [leaf for leaf in tree_leaves(checkpoint.read(folder)["learner"]) if isinstance(leaf, torch.Tensor)]
    for folder in (one, other)
  ]
  rows = [_rows(folder) for folder in (one, other)]
  apart = sum(a.numpy().tobytes() != b.numpy().tobytes() for a, b in zip(*tensors, strict=True))
  return apart, sum(a != b for a, b in zip(*rows, strict=True))


def _rows(folder: Path) -> list[list[str]]:
  """Return the log, without what the machine decides."""
  with (folder / "metrics.csv").open(newline="") as file:
    rows = list(csv.DictReader(file))
  return [[value for name, value in row.items() if not CLOCKED.match(name)] for row in rows]


def kill(folder: Path, words: Sequence[str], kills: int) -> dict[str, int]:
  """Kill a training again and again; return how often something special happened."""
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
  """Kill a training, let it end, and say what came of it beside one that nothing interrupted."""
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
