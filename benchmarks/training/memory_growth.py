"""Memory growth of a long training: python -m benchmarks.training.memory_growth [key=value ...].

The program runs 10,000 iterations of a small Cartpole, including log, TensorBoard and checkpoints. It prints
how much the resident memory [MB] has grown after the first tenth.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import train
from benchmarks.report import line
from gpurobot.run import training_run
from gpurobot.run.log import Log

ITERATIONS = 10_000
SMALL = ["task=cartpole", "num_envs=16", "ppo.horizon=2", "ppo.epochs=2", "log_every=10"]
MEGA = 1e6


def resident() -> float:
  """Return the resident memory of this process [MB]."""
  pages = int(Path("/proc/self/statm").read_text().split()[1])
  return pages * os.sysconf("SC_PAGE_SIZE") / MEGA


def measure(words: list[str]) -> list[float]:
  """Train with these arguments; return the resident memory [MB] after each iteration."""
  samples: list[float] = []

  class RecordingLog(Log):
    def step(self) -> None:
      super().step()
      samples.append(resident())

  with tempfile.TemporaryDirectory() as folder, mock.patch.object(training_run, "Log", RecordingLog):
    train.main([*words, f"run_dir={folder}/run"])
  return samples


def growth(samples: list[float]) -> float:
  """Return the mean of the last tenth of the samples minus the second tenth's; the first is warm-up."""
  tenth = len(samples) // 10
  return (sum(samples[-tenth:]) - sum(samples[tenth : 2 * tenth])) / tenth


def run(words: Sequence[str] = ()) -> None:
  """Measure and report."""
  samples = measure([*SMALL, f"max_iterations={ITERATIONS}", "checkpoint_seconds=5", *words])
  line("memory.growth_mb", growth(samples))


if __name__ == "__main__":
  run(sys.argv[1:])
