"""Soak test, an hour of training: python -m benchmarks.soak [key=value ...] for `train.py`.

The program prints `name: value` lines: memory and speed in the second tenth of the time, after warm-up, and
in the last tenth, and the number of warnings. Speed is measured per second of processor time, so that other
programs have little effect.
"""

import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from typing import ClassVar, NamedTuple
from unittest import mock

import train
from benchmarks.memory import resident
from benchmarks.report import line
from gpurobot.run import training_run
from gpurobot.run.log import Log

WORDS = ["task=ant", "num_envs=64", "threads=1", "max_seconds=3600", "checkpoint_seconds=30"]
TENTHS = 10


class Sample(NamedTuple):
  """Sample of memory and progress during a training."""

  seconds: float  # training time
  processor: float  # processor time of all threads [s]
  memory: float  # resident memory [MB]
  steps: int


class WatchedLog(Log):
  """Log that takes a sample once a second and collects its warnings."""

  samples: ClassVar[list[Sample]] = []
  caught: ClassVar[list[str]] = []

  def step(self) -> None:
    """Record an iteration."""
    super().step()
    if not self.samples or self.seconds - self.samples[-1].seconds >= 1:
      self.samples.append(Sample(self.seconds, time.process_time(), resident(), self.learner.steps))

  def close(self) -> None:
    """Write summary.json and close the files."""
    self.caught.extend(self.warnings)
    super().close()


def measure(words: Sequence[str]) -> tuple[list[Sample], list[str]]:
  """Train with these arguments; return the samples and all warnings, including Python's."""
  WatchedLog.samples, WatchedLog.caught = [], []
  with (
    tempfile.TemporaryDirectory() as folder,
    mock.patch.object(training_run, "Log", WatchedLog),
    warnings.catch_warnings(record=True) as caught,
  ):
    warnings.simplefilter("always")
    train.main([*words, f"run_dir={folder}/run"])
  return WatchedLog.samples, [*WatchedLog.caught, *(str(warning.message) for warning in caught)]


def tenths(samples: list[Sample]) -> list[tuple[float, float]]:
  """Return the mean memory [MB] and the speed [steps per s of processor time] of each tenth of the time."""
  end = samples[-1].seconds
  found = []
  for index in range(TENTHS):
    low, high = (end * edge / TENTHS for edge in (index, index + 1))
    part = [sample for sample in samples if low <= sample.seconds <= high]
    first, last = part[0], part[-1]
    speed = (last.steps - first.steps) / (last.processor - first.processor)
    found.append((sum(sample.memory for sample in part) / len(part), speed))
  return found


def run(words: Sequence[str] = ()) -> None:
  """Measure and report."""
  samples, caught = measure([*WORDS, *words])
  _, *parts = tenths(samples)
  memories, speeds = zip(*parts, strict=True)
  line("soak.seconds", samples[-1].seconds)
  line("soak.processor_seconds", samples[-1].processor)
  line("soak.steps", samples[-1].steps)
  line("soak.memory_start_mb", memories[0])
  line("soak.memory_end_mb", memories[-1])
  line("soak.memory_growth_percent", 100 * (memories[-1] / memories[0] - 1))
  line("soak.speed_start", speeds[0])
  line("soak.speed_end", speeds[-1])
  line("soak.speed_slowest_of_fastest", min(speeds) / max(speeds))
  line("soak.warnings", len(caught))
  for warning in caught[:TENTHS]:
    print(f"soak.warning: {warning}")


if __name__ == "__main__":
  run(sys.argv[1:])
