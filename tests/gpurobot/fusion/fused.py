"""Functions of tensors whose operations are fused."""

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.fused import Compiled
from gpurobot.device import tape
from gpurobot.device.calls import Call, Fused
from gpurobot.device.graph import WARM_UPS
from gpurobot.fusion.schedule import RowFusion

__all__ = ["ROWS", "Compiled", "Fusion", "bits", "fuse"]  # for tests of fusion
ROWS = 64


class Fusion(RowFusion):
  """A fusion that keeps what it returns."""

  found: Fused | None = None

  def __init__(self, rows: int = ROWS, builder=Compiled) -> None:
    super().__init__(rows, builder)

  def __call__(self, *words) -> Fused | None:
    self.found = super().__call__(*words)
    return self.found


def names(calls: list[Call]) -> list[str]:
  """Return the names of operations; a function that took the place of some is "run"."""
  return [getattr(call.operation, "__name__", "").split(".")[0] for call in calls]


def fuse(
  monkeypatch, function: Callable[..., None], *args: Tensor, fusion: Fusion | None = None
) -> list[str]:
  """Call a function until it is fused, once more so that it is compared, and as a replay.

  Return the names of the operations that are left; "function" if none was fused.
  """
  monkeypatch.setattr(tape, "FUSE", WARM_UPS + 3)
  fusion = fusion or Fusion()
  fused = tape.Tape(function, fusion=fusion)
  for _ in range(WARM_UPS + 6):
    fused(*args)
  return names(fusion.found.calls) if fused.fused and fusion.found else ["function"]


def bits(tensor: Tensor) -> Tensor:
  """Return the bytes of a tensor."""
  return tensor.contiguous().reshape(-1).view(torch.uint8)
