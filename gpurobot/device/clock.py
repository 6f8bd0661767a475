"""Per-phase timers, CUDA events on a GPU."""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch.profiler import record_function

from gpurobot.device.tape import repeated


class Clock:
  """Timer of the parts of an iteration: the time from `begin(part)` to the next call counts for that part.

  Every moment counts for exactly one part; "a/b" is a piece of the part "a". On CUDA the times are events on
  the stream, so the host never waits. During a graph capture `begin` does nothing: a replay is one part.
  """

  def __init__(self, device: torch.device) -> None:
    """Start in the part "other"."""
    self.ranges = False  # mark the parts as ranges for torch's profiler
    self.nvtx = False  # mark them as NVTX ranges for Nsight Systems
    self._open_ranges = ExitStack()
    self._cuda = device.type == "cuda"
    self._begun: deque[tuple[str, Any]] = deque()  # part and its start, the current part last
    self._seconds: dict[str, float] = {}
    self.begin("other")

  @torch.compiler.disable
  @repeated
  def begin(self, part: str) -> None:
    """Start a part; the current one ends."""
    if self._cuda and torch.cuda.is_current_stream_capturing():
      return
    self._open_ranges.close()
    if self.ranges:
      self._open_ranges.enter_context(record_function(part))
    if self.nvtx:
      self._open_ranges.enter_context(torch.cuda.nvtx.range(part))
    self._begun.append((part, self._now()))
    while len(self._begun) > 1 and self._reached(self._begun[1][1]):
      self._book()

  def seconds(self) -> dict[str, float]:
    """Return the time of each part so far [s]; wait for the device."""
    self.begin(self._begun[-1][0])
    if self._cuda:
      torch.cuda.synchronize()
    while len(self._begun) > 1:
      self._book()
    return dict(self._seconds)

  def _now(self) -> Any:
    if not self._cuda:
      return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event

  def _reached(self, moment: Any) -> bool:
    """Return whether the device, which runs behind the host, has reached a moment."""
    return moment.query() if self._cuda else True

  def _book(self) -> None:
    """Add the time of the oldest ended part to its sum."""
    part, start = self._begun.popleft()
    end = self._begun[0][1]
    passed = start.elapsed_time(end) / 1000 if self._cuda else end - start
    self._seconds[part] = self._seconds.get(part, 0.0) + passed


class OverlappedClock(Clock):
  """Timer of a learner's parts that also reports the parts of a concurrent timer.

  Its times sum to more than the elapsed time.
  """

  def __init__(self, device: torch.device, other: Clock) -> None:
    """Start in the part "other"; the other timer's own part "other" is left out."""
    super().__init__(device)
    self._meanwhile = other

  def seconds(self) -> dict[str, float]:
    """Return the time of each part so far [s], of both timers; wait for the device."""
    return {**self._meanwhile.seconds(), **super().seconds()}


def shares(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
  """Return each part's share of the time between two readings of a clock; the shares sum to 1."""
  spent = {part: seconds - before.get(part, 0.0) for part, seconds in after.items()}
  total = sum(spent.values())
  return {part: seconds / total for part, seconds in spent.items()}
