"""Runner of the physics substeps of a control step, in one or several launches of the simulation."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


class SubstepRunner:
  """Runner that combines the outputs and the dropped contacts of all launches of a control step."""

  def __init__(self, sim: Any, outputs: Sequence[str] | Mapping[str, str] | None) -> None:
    """Find the outputs in `Task.outputs` that are a mean or a maximum over the control step."""
    reduced = outputs if isinstance(outputs, Mapping) else {}
    self._sim, self._reduced = sim, {name: how for name, how in reduced.items() if how != "last"}
    self._steps = 0  # physics steps taken in this control step
    self._dropped: list[Tensor] = []  # dropped contacts of all launches but the last, [num_envs] each

  def begin(self) -> None:
    """Begin a control step."""
    self._steps = 0
    self._dropped.clear()

  def advance(self, substeps: int, ctrl: Tensor | None) -> None:
    """Take physics steps in one launch, with controls `ctrl` [num_envs, substeps, nu] or `sim.ctrl`."""
    before: dict[str, Tensor] = {}
    if self._steps:
      before = {name: getattr(self._sim, name).clone() for name in self._reduced}
      self._dropped.append(self._sim.overflow.clone())
    self._sim.step(substeps, ctrl)
    for name, past in before.items():
      now = getattr(self._sim, name)
      if self._reduced[name] == "mean":
        now.mul_(substeps).add_(past, alpha=self._steps).div_(self._steps + substeps)
      else:
        now.copy_(torch.maximum(now, past))
    self._steps += substeps

  def dropped(self) -> Tensor:
    """Return the number of contacts dropped in this control step [], over all environments."""
    # If a task steps the simulation itself, only its last launch is counted.
    return sum(self._dropped, self._sim.overflow).sum()
