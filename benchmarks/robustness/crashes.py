"""Crash tests of training: python -m benchmarks.robustness.crashes [kills=100] [ranks=1] [key=value ...].

It kills a training at random moments, and resumes it each time; with `ranks=2`, one of two ranks under
`torchrun --max-restarts`, which restarts both. Other arguments go to `train.py`. At the end, `name: value`
lines report the differences from an uninterrupted training.
"""

import csv
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import SIGKILL, SIGTERM

import torch
from torch.utils._pytree import tree_leaves

import train
from benchmarks.report import line
from gpurobot.run import checkpoint
from gpurobot.run.files import PART

ROOT = Path(__file__).parents[2]
WORDS = ["task=cartpole", "num_envs=64", "threads=1", "checkpoint_seconds=0", "log_every=1"]
HALF = f"{checkpoint.NAME}{PART}"  # partial file of an interrupted checkpoint
MORE = 5  # iterations after the last kill
LIFE = 4.0  # longest life of a process, relative to the time from a resume to its first iteration
WAIT = 2.0  # longest time from a checkpoint until a rank is killed [s]
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
      text = output.read_text() if output.exists() else "no output"
      raise RuntimeError(f"the training in '{folder}' has ended: {text}")
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


def kill_ranks(folder: Path, words: Sequence[str], kills: int) -> dict[str, int]:
  """Kill ranks of a training, then terminate it; return the number of unreadable checkpoints."""
  moments, damaged = random.Random(kills), 0
  job = torchrun(folder, words, kills)
  for _ in range(kills):
    wait_for_checkpoint(folder, lambda: job.poll() is None)
    time.sleep(moments.uniform(0, WAIT))
    attempt = ranks(job)
    os.kill(moments.choice(attempt), SIGKILL)
    while set(attempt) & set(ranks(job)) and job.poll() is None:
      time.sleep(POLL)
    damaged += unreadable(folder)
  wait_for_checkpoint(folder, lambda: job.poll() is None)
  job.send_signal(SIGTERM)
  job.wait()
  return {"unreadable": damaged}


def run_to_end(folder: Path, words: Sequence[str], num_ranks: int) -> int:
  """Run or resume a training until it ends; return its exit status."""
  if num_ranks > 1:
    return torchrun(folder, words).wait()
  process = start(folder, words)
  process.join()
  return process.exitcode or 0


def compare(folder: Path, words: Sequence[str], kills: int, num_ranks: int = 1) -> dict[str, int]:
  """Kill a training repeatedly, let it end, and compare it with an uninterrupted training."""
  killed, whole = folder / "killed", folder / "whole"
  counts = {"kills": kills, **(kill_ranks if num_ranks > 1 else kill)(killed, words, kills)}
  end = iterations(killed) + MORE
  for run in (killed, whole):
    if run_to_end(run, [*words, f"max_iterations={end}"], num_ranks):
      raise RuntimeError(run.with_suffix(".txt").read_text())
  tensors, rows = differences(killed, whole)
  return counts | {"iterations": end, "different_tensors": tensors, "different_rows": rows}


def run(argv: Sequence[str] = ()) -> None:
  """Kill, compare and report."""
  settings = {"kills": "100", "ranks": "1"}
  settings |= dict(word.split("=", 1) for word in argv if word.partition("=")[0] in settings)
  words = [*WORDS, *(word for word in argv if word.partition("=")[0] not in settings)]
  name = "rank_crashes" if settings["ranks"] == "2" else "crashes"
  with tempfile.TemporaryDirectory() as folder:
    found = compare(Path(folder), words, int(settings["kills"]), int(settings["ranks"]))
  for what, value in found.items():
    line(f"{name}.{what}", value)


if __name__ == "__main__":
  run(sys.argv[1:])
