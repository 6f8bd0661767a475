"""An hour of training: python -m benchmarks.soak [key=value ...] for `train.py`.

Prints `name: value` lines: memory and speed in the second tenth of the time, when all is warm, and in the
last; how many warnings there were. Speed is per second of processor time: other programs hardly count.
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
from gpurobot.run.log import Log

WORDS = ["task=ant", "num_envs=64", "threads=1", "max_seconds=3600", "checkpoint_seconds=30"]
TENTHS = 10


class Sample(NamedTuple):
  """The state of a training at a moment."""

  seconds: float  # of training
  processor: float  # time of all threads [s]
  memory: float  # [MB]
  steps: int


class WatchedLog(Log):
  """A log that samples itself once a second, and keeps its warnings for later."""

  samples: ClassVar[list[Sample]] = []
  told: ClassVar[list[str]] = []

  def step(self) -> None:
    """Follow an iteration."""
    super().step()
    if not self.samples or self.seconds - self.samples[-1].seconds >= 1:
      self.samples.append(Sample(self.seconds, time.process_time(), resident(), self.learner.steps))

  def close(self) -> None:
    """Write summary.json and close the files."""
    self.told.extend(self.warnings)
    super().close()


def measure(words: Sequence[str]) -> tuple[list[Sample], list[str]]:
  """Train by the words; return the samples and all that warned, Python's warnings among it."""
  WatchedLog.samples, WatchedLog.told = [], []
  with (
    tempfile.TemporaryDirectory() as folder,
    mock.patch.object(train, "Log", WatchedLog),
    warnings.catch_warnings(record=True) as told,
  ):
    warnings.simplefilter("always")
    train.main([*words, f"run_dir={folder}/run"])
  return WatchedLog.samples, [*WatchedLog.told, *(str(warning.message) for warning in told)]


def tenths(samples: list[Sample]) -> list[tuple[float, float]]:
  """Return the mean memory [MB] and the speed [steps/s of processor time] of each tenth of the time."""
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
  samples, told = measure([*WORDS, *words])
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
  line("soak.warnings", len(told))
  for warning in told[:TENTHS]:
    print(f"soak.warning: {warning}")


if __name__ == "__main__":
  run(sys.argv[1:])
