"""Training profile for `profile=true`: a table of timers, and a trace by torch's profiler.

On CUDA the parts are NVTX ranges too: Nsight Systems with --capture-range=cudaProfilerApi records the
iterations that the timers measure.
"""

import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import profiler

from gpurobot.device.clock import shares
from gpurobot.learn.algorithm import Algorithm

# Numbers of iterations: skipped, as they allocate memory and graphs; measured by timers, at no cost; traced,
# which slows them down.
SKIPPED, MEASURED, TRACED = 3, 5, 2
ITERATIONS = SKIPPED + MEASURED + TRACED
TABLE, TRACE = "profile.txt", "trace.json"  # files in the run folder; Perfetto shows the trace
OPERATORS = 10  # number of operators in the table


class Profile:
  """Profiler of a few iterations, which writes the table and the trace to the run folder."""

  def __init__(self, learner: Algorithm, folder: Path) -> None:
    """Start with the next iteration."""
    self._learner, self._folder = learner, folder
    self._start = learner.iteration
    self._before, self._began = dict[str, float](), 0.0
    self._table = ""
    self._profiler = profiler.profile()
    self._nsight = learner.clock.nvtx = learner.device.type == "cuda"
    self.done = False

  def step(self) -> str | None:
    """Count a finished iteration; after the last profiled one return the table and the paths of the files."""
    count, clock = self._learner.iteration - self._start, self._learner.clock
    if count == SKIPPED:
      self._before, self._began = clock.seconds(), time.perf_counter()
      if self._nsight:
        torch.cuda.profiler.start()
    elif count == SKIPPED + MEASURED:
      self._table = table(self._before, clock.seconds(), MEASURED, time.perf_counter() - self._began)
      if self._nsight:
        torch.cuda.profiler.stop()
      self._profiler.start()
      clock.ranges = True
    elif count == ITERATIONS:
      clock.ranges = clock.nvtx = False
      clock.begin("other")  # ends the last range
      self._profiler.stop()
      self.done = True
      return self._write()
    return None

  def _write(self) -> str:
    self._profiler.export_chrome_trace(str(self._folder / TRACE))
    text = f"{self._table}\n{operators(self._profiler)}"
    (self._folder / TABLE).write_text(text)
    return f"{text}\nThis table is in {self._folder / TABLE}, the trace in {self._folder / TRACE}."


def table(before: Mapping[str, float], after: Mapping[str, float], iterations: int, passed: float) -> str:
  """Return a table of the parts of an iteration, the largest first, from two readings of the clock [s].

  passed: time between the two [s], less than the sum of the parts if some go on at once.
  """
  total = sum(after.values()) - sum(before.values())
  found = {name: share * total / passed for name, share in shares(before, after).items()}
  parts: dict[str, dict[str, float]] = {}  # part -> piece -> share
  for name, share in found.items():
    part, _, piece = name.partition("/")
    parts.setdefault(part, {})[piece or "rest"] = share
  lines = [("iteration" if total < 1.05 * passed else "iteration, at once", 1.0)]
  for part, pieces in sorted(parts.items(), key=lambda item: -sum(item[1].values())):
    lines.append((part, sum(pieces.values())))
    if len(pieces) > 1:
      lines += [(f"  {piece}", share) for piece, share in sorted(pieces.items(), key=lambda item: -item[1])]
  milliseconds = 1000 * passed / iterations
  return "".join(f"{name:<20} {share * milliseconds:10.2f} ms {share:8.1%}\n" for name, share in lines)


def operators(trace: profiler.profile) -> str:
  """Return a table of the operators with the most self time, without the operators that they call."""
  found = [event for event in trace.key_averages() if not event.is_user_annotation]
  on_device = any(event.self_device_time_total for event in found)
  rows = [  # [us]
    (event.self_device_time_total if on_device else event.self_cpu_time_total, event.count, event.key[:40])
    for event in found
  ]
  return "".join(
    f"{name:<40} {spent / 1000 / TRACED:10.2f} ms {count / TRACED:8.0f} calls\n"
    for spent, count, name in sorted(rows, reverse=True)[:OPERATORS]
  )
