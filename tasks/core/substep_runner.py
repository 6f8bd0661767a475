"""The runner of a control step's substeps, in as many launches of the simulation as a task makes."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


class SubstepRunner:
  """Steps a simulation; contacts dropped, means and greatest values are of all launches of a control step."""

  def __init__(self, sim: Any, outputs: Sequence[str] | Mapping[str, str] | None) -> None:
    """Look at the outputs that are not the last time step's, as `Task.outputs` names them."""
    reduced = outputs if isinstance(outputs, Mapping) else {}
    self._sim, self._reduced = sim, {name: how for name, how in reduced.items() if how != "last"}
    self._steps = 0  # time steps of this control step so far
    self._dropped: list[Tensor] = []  # contacts without room, of all launches but the last [num_envs] each

  def begin(self) -> None:
    """Begin a control step."""
    self._steps = 0
    self._dropped.clear()

  def advance(self, substeps: int, ctrl: Tensor | None) -> None:
    """Take time steps in one launch, under `ctrl` [num_envs, substeps, nu] or `sim.ctrl`."""
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
    """Return how many contacts had no room in this control step [], in all environments."""
    # A task that steps the simulation itself is told of its last launch.
    return sum(self._dropped, self._sim.overflow).sum()
