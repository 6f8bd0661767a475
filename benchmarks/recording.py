"""The cost of videos to a training of Ant: steps/s with and without; python -m benchmarks.recording.

With one thread of two a core is left to the process that draws; with two it takes what they leave over.
"""

import os
import statistics

from benchmarks.report import line
from benchmarks.training import own_speed

SECONDS = 40.0  # of a training
TURNS = 3
EVERY = "record_every=10"  # a new video begins about when the last one is done


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
  run()
