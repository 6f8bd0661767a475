"""Functions of tensors whose operations are fused."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.training.fused import Compiled
from gpurobot.device import tape
from gpurobot.device.calls import Call
from gpurobot.device.graph import WARM_UPS
from gpurobot.fusion import schedule

ROWS = 64


class Fusion(Compiled):
  """A fusion that keeps what it returns."""

  found: list[Call] | None = None

  def __init__(self) -> None:
    super().__init__(ROWS)

  def __call__(self, *words) -> list[Call] | None:
    self.found = super().__call__(*words)
    return self.found


def names(calls: list[Call]) -> list[str]:
  """Return the names of operations but views; a function that took the place of some is "run"."""
  active = [call for call in calls if not schedule.is_view(call)]
  return [getattr(call.operation, "__name__", "").split(".")[0] for call in active]


def fuse(monkeypatch, function: Callable[..., None], *args: Tensor) -> list[str]:
  """Call a function until it is fused, once more so that it is compared, and as a replay.

  Return the names of the operations that are left; "function" if none was fused.
  """
  monkeypatch.setattr(tape, "FUSE", WARM_UPS + 3)
  taped, fusion = tape.Tape(function), Fusion()
  taped.fusion = fusion
  for _ in range(WARM_UPS + 6):
    taped(*args)
  return names(fusion.found) if taped.fused and fusion.found else ["function"]


def bits(tensor: Tensor) -> Tensor:
  """Return the bytes of a tensor."""
  return tensor.contiguous().reshape(-1).view(torch.uint8)
