"""Per-part timers of a training, by the device's own clock."""

import time
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch.profiler import record_function


class Clock:
  """Adds up where the time goes: from `begin(part)` to the next call it goes to that part.

  Every moment belongs to exactly one part; "a/b" is a piece of the part "a". On CUDA the moments are events
  on the stream, so the host never waits. While a graph is captured nothing begins: its replay is one part.
  """

  def __init__(self, device: torch.device) -> None:
    """Start in the part "other"."""
    self.ranges = False  # show the parts as ranges to torch's profiler
    self.nvtx = False  # and to Nsight Systems
    self._shown = ExitStack()
    self._cuda = device.type == "cuda"
    self._begun: deque[tuple[str, Any]] = deque()  # part and moment, the present part last
    self._seconds: dict[str, float] = {}
    self.begin("other")

  @torch.compiler.disable
  def begin(self, part: str) -> None:
    """Let the time from now on go to a part."""
    if self._cuda and torch.cuda.is_current_stream_capturing():
      return
    self._shown.close()
    if self.ranges:
      self._shown.enter_context(record_function(part))
    if self.nvtx:
      self._shown.enter_context(torch.cuda.nvtx.range(part))
    self._begun.append((part, self._now()))
    while len(self._begun) > 1 and self._reached(self._begun[1][1]):
      self._book()

  def seconds(self) -> dict[str, float]:
    """Return the seconds of each part so far [s]; waits for the device."""
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
    """Tell whether the device, which runs behind the host, has come to a moment."""
    return moment.query() if self._cuda else True

  def _book(self) -> None:
    """Add up the time of the first part that has ended."""
    part, start = self._begun.popleft()
    end = self._begun[0][1]
    passed = start.elapsed_time(end) / 1000 if self._cuda else end - start
    self._seconds[part] = self._seconds.get(part, 0.0) + passed


def shares(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
  """Return the share of each part in the time between two readings of a clock; they add up to 1."""
  spent = {part: seconds - before.get(part, 0.0) for part, seconds in after.items()}
  total = sum(spent.values())
  return {part: seconds / total for part, seconds in spent.items()}
