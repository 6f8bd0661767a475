"""Cost of recording videos during a training of Ant: python -m benchmarks.recording.

The program compares steps/s with and without videos. With one thread on two cores, the drawing process has a
core to itself; with two threads, it shares the cores.
"""

import os
import statistics

from benchmarks.report import line, start_whole
from benchmarks.training import own_speed

SECONDS = 40.0  # duration of a training
TURNS = 3
EVERY = "record_every=10"  # a new video starts about when the last one is finished


def run() -> None:
  """Measure and report."""
  for threads in range(1, len(os.sched_getaffinity(0)) + 1):
    words = (f"threads={threads}", "log_every=1")
    turns = [(own_speed(SECONDS, *words), own_speed(SECONDS, *words, EVERY)) for _ in range(TURNS)]
    without, filmed = (statistics.median(speeds) for speeds in zip(*turns, strict=True))
    line(f"recording.threads{threads}.without", without)
    line(f"recording.threads{threads}.with", filmed)
    line(f"recording.threads{threads}.ratio", statistics.median(after / before for before, after in turns))


if __name__ == "__main__":
  start_whole(run)
