"""Memory and utilisation of the machine during a training."""

import math
import os
import resource
import sys
import time

import torch

GIGA = 1e9
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes


class Usage:
  """The memory and utilisation of this process and of its device."""

  def __init__(self, device: torch.device) -> None:
    self._device = device
    self._last = self._times()

  @staticmethod
  def _times() -> tuple[float, float]:
    """Return the time that has passed, and that the threads of this process have worked [s]."""
    return time.monotonic(), time.process_time()

  def read(self) -> dict[str, float]:
    """Return the usage by name; the utilisation of a CPU is that since the last reading."""
    found = {"memory/process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_UNIT / GIGA}
    if self._device.type == "cuda":
      free, total = torch.cuda.mem_get_info(self._device)  # whoever allocated it: torch, Warp, CUDA graphs
      return found | {"memory/device": (total - free) / GIGA, "utilisation": self._cuda_utilisation()}
    (wall, worked), self._last = self._last, self._times()
    cores = len(os.sched_getaffinity(0))
    share = (self._last[1] - worked) / max(self._last[0] - wall, 1e-9) / cores
    return found | {"utilisation": share}

  def _cuda_utilisation(self) -> float:
    """Return the share of recent time in which a kernel ran; nan where the driver's library is missing."""
    try:
      return torch.cuda.utilization(self._device) / 100
    except (ModuleNotFoundError, RuntimeError):
      return math.nan
