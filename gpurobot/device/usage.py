"""Memory use and utilisation during training."""

import math
import os
import sys
import time

import torch

from gpurobot.device.process import usable_cores

try:
  import resource
except ImportError:  # Windows
  resource = None  # type: ignore[assignment]

GIGA = 1e9
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes


def total_memory(device: torch.device) -> int:
  """Return the memory of a device, or of the machine for a CPU, whoever uses it [bytes].

  If the system does not report it, it is the largest number.
  """
  if device.type == "cuda":
    return torch.cuda.mem_get_info(device)[1]
  if not hasattr(os, "sysconf"):  # Windows
    return sys.maxsize
  return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def peak_memory() -> float:
  """Return the most memory that this process has held [bytes]; nan where the system does not count it."""
  return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_UNIT if resource else math.nan


class Usage:
  """Memory use and utilisation of this process and of its device."""

  def __init__(self, device: torch.device) -> None:
    self._device = device
    self._last = self._times()

  @staticmethod
  def _times() -> tuple[float, float]:
    """Return the wall time and the CPU time of this process [s]."""
    return time.monotonic(), time.process_time()

  def read(self) -> dict[str, float]:
    """Return memory [GB] and utilisation [0, 1] by name; CPU utilisation is since the last call."""
    found = {"memory/process": peak_memory() / GIGA}
    if self._device.type == "cuda":
      free, total = torch.cuda.mem_get_info(self._device)  # by all users: torch, Warp, CUDA graphs
      return found | {"memory/device": (total - free) / GIGA, "utilisation": self._cuda_utilisation()}
    (wall, worked), self._last = self._last, self._times()
    share = (self._last[1] - worked) / max(self._last[0] - wall, 1e-9) / usable_cores()
    return found | {"utilisation": share}

  def _cuda_utilisation(self) -> float:
    """Return the share of recent time in which a kernel ran; nan if the driver's library is missing."""
    try:
      return torch.cuda.utilization(self._device) / 100
    except (ModuleNotFoundError, RuntimeError):
      return math.nan
