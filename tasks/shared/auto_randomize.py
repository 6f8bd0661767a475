"""Automatic domain randomisation: ranges that grow where the robot succeeds at their ends.

After OpenAI 2019 (arXiv 1910.07113). Every range begins at one number, and each of its two ends can grow to
that of its draw. In a share of the episodes one number is not drawn, but put at an end of its present range.
If such an episode succeeds, the end moves outwards, otherwise inwards.

Two things differ from the paper. It has one set of ranges and moves an end by the mean of many episodes. Here
each environment has ranges of its own and moves them after each episode: no environment needs to know of
others, so several ranks do what one does. And the steps outwards and inwards differ, so that an end comes to
rest where a share `target` of the episodes succeeds (weighted up-down method; Kaernbach 1991).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.base import Task
from tasks.core.shapes import like
from tasks.shared.randomize import Draw, Randomization


@dataclass(frozen=True)
class Growth:
  """How ranges grow."""

  step: float = 0.05  # of an end outwards, as a share of its way; inwards it is step * target / (1 - target)
  target: float = 0.8  # share of the episodes that succeed where an end comes to rest
  share: float = 0.5  # of the episodes with a number at an end

  def __post_init__(self) -> None:
    if not (self.step > 0 and 0 < self.target < 1 and 0 <= self.share <= 1):
      raise ValueError(f"{self}: write 0 < step, 0 < target < 1 and 0 <= share <= 1")


class AutomaticRandomization(Randomization):
  """Draws of a task with ranges that grow from their starts, in each environment by its own successes.

  The task makes two buffers in `setup`: `extent`, lasting, with `ends(draws)` columns, and `probe`, int64. It
  adds `draw()` to its `initial_state`. Checkpoints then include both. extent: how far each end has gone from
  the start of its range, 0, to the end of its draw, 1; the low ends come first. probe: the end at which a
  number of this episode is, counted from 1; 0: none.
  """

  def __init__(
    self,
    task: Task,
    draws: Mapping[str, Draw],
    starts: Mapping[str, float],
    buffers: tuple[Tensor, Tensor],
    growth: Growth = Growth(),
  ) -> None:
    """Start the ranges of draws at `starts`, by name; buffers: `extent` and `probe` of the task."""
    super().__init__(task, draws)
    for name, draw in draws.items():
      if not draw.low <= starts[name] <= draw.high:
        raise ValueError(f"the range of '{name}' begins at {starts[name]:g}, outside of its draw")
    self.growth, self._names = growth, list(draws)
    self.extent, self.probe = buffers
    self._starts = task.constant([draw.scale_of(starts[name]) for name, draw in draws.items()])
    limits = task.constant([draw.ends for draw in draws.values()])  # [draws, 2]
    self._way = (limits - self._starts.unsqueeze(1)).T.flatten()  # of each end [ends]

  def draw(self) -> dict[str, Tensor]:
    """Return new values of all fields, `extent` and `probe` for `initial_state`; empty in evaluation."""
    if not self._task.training:
      return {}
    uniform, count = self._task.random.uniform, self.extent.shape[1]
    self._grown = self.grown()
    end = 1 + (count * uniform("end of a range", ())).long()
    self._next = torch.where(uniform("an end or none", ()) < self.growth.share, end, 0)
    return super().draw() | {"extent": self._grown, "probe": self._next}

  def grown(self) -> Tensor:
    """Return the extents [num_envs, ends] after the episodes that end now: only those at an end count."""
    success = self._task.success()
    if success is None:
      raise ValueError("ranges grow where episodes succeed: define success()")
    inwards = -self.growth.step * self.growth.target / (1 - self.growth.target)
    moved = self.growth.step * success + inwards * ~success
    ends = 1 + torch.arange(self.extent.shape[1], device=self.probe.device)
    return (self.extent + (self.probe.unsqueeze(1) == ends) * moved.unsqueeze(1)).clamp(0.0, 1.0)

  def _uniform(self, name: str, draw: Draw, shape: tuple[int, ...]) -> Tensor:  # noqa: ARG002
    """Return uniform numbers [num_envs, *shape] in the present ranges, or at the end that is probed."""
    unit = self._task.random.uniform(f"randomise {name}", shape)
    low, high = self._names.index(name), len(self._names) + self._names.index(name)  # its ends
    at = {
      end: like(self._starts[low] + self._grown[:, end] * self._way[end], unit).expand_as(unit)
      for end in (low, high)
    }
    drawn = at[low] + (at[high] - at[low]) * unit
    for end, number in at.items():
      drawn = torch.where(like(self._next == 1 + end, unit), number, drawn)
    return drawn


def ends(draws: Mapping[str, Draw]) -> int:
  """Return the number of ends of the ranges of draws."""
  return 2 * len(draws)
