"""Where the time of an iteration goes, by the device's own clock."""

import time
from typing import Any

import torch


class Clock:
  """Adds up where the time goes: `mark(part)` books what has passed since the last mark."""

  def __init__(self, device: torch.device) -> None:
    self._cuda = device.type == "cuda"
    self._marks: list[tuple[str, Any]] = []
    self._last = self._now()

  def _now(self) -> Any:
    if not self._cuda:
      return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)  # the device runs behind: its own clock counts
    event.record()
    return event

  def mark(self, part: str) -> None:
    """Book the time since the last mark on a part."""
    self._marks.append((part, self._now()))

  def take(self) -> dict[str, float]:
    """Return the seconds of each part since the last `take`; waits for the device."""
    if self._cuda:
      torch.cuda.synchronize()
    seconds: dict[str, float] = {}
    for part, now in self._marks:
      passed = self._last.elapsed_time(now) / 1000 if self._cuda else now - self._last
      seconds[part] = seconds.get(part, 0.0) + passed
      self._last = now
    self._marks.clear()
    return seconds
