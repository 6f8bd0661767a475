"""Start frames of episodes: drawn more often where a motion is lost, and some held out for evaluation.

Adaptive sampling follows BeyondMimic (Liao et al. 2025, arXiv 2508.08241): clips are cut into bins, failures
are counted by bin, and a kernel spreads them to the bins before. There the counts are of all environments;
here each environment keeps its own, so that they are the same on any number of ranks.
"""

from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from tasks.base import option
from tasks.motion.library import Library

REACH = 3  # bins before a failure that count it


class Where(StrEnum):
  """Where episodes start."""

  automatic = "automatic"
  anywhere = "anywhere"
  first = "first"


@dataclass
class Config:
  """Settings of start frames."""

  starts: Where = option(
    Where.automatic,
    "start frames: anywhere, first (frame of each clip), or automatic: in training those that are not held "
    "out, in evaluation those that are",
  )
  start_bin: float = option(0.5, "duration of a bin of start frames", "s", low=0.02)
  held_out: int = option(6, "one of so many bins is held out of the starts in training; 0: none", low=0)
  start_uniform: float = option(0.2, "fraction of starts that failures do not influence", low=0.001, high=1)
  start_memory: float = option(0.1, "weight of the newest episode in the failures by bin", low=0.001, high=1)
  start_spread: float = option(0.8, "weight of a bin's failures for the bin before it", low=0, high=0.99)


class Starts:
  """Bins of start frames of a library, and their probabilities by the failures of each environment."""

  def __init__(self, library: Library, config: Config, margin: int, *, training: bool) -> None:
    """Cut the clips into bins; an episode has `margin` control steps or more, if its clip is long enough."""
    self.config = config
    self.adapts = training and config.starts is not Where.first
    size = max(1, round(config.start_bin / library.dt))  # frames of a bin
    usable = [max(1, length - 1 - margin) for length in library.lengths.tolist()]
    bins = [(clip, first) for clip, frames in enumerate(usable) for first in range(0, frames, size)]
    self.clip, self.first_frame = torch.tensor(bins, device=library.first.device).unbind(1)  # [bins] int64
    ends = torch.tensor(usable, device=library.first.device)[self.clip]
    self.count = (ends - self.first_frame).clamp(max=1 if config.starts is Where.first else size)
    even = library.weights[self.clip] * self.count / ends * self._allowed(size, training=training)
    self.even = even / even.sum()  # probabilities of the bins without failures [bins]
    first_row = library.first[self.clip] + self.first_frame
    rows = torch.arange(len(library), device=first_row.device)
    self.bin_of_row = torch.searchsorted(first_row, rows, right=True) - 1
    # A start gets the failures of its bin and of those after it: failures [n, bins] @ spread [bins, bins].
    index = torch.arange(self.bins, device=first_row.device)
    later = index.unsqueeze(1) - index
    near = (later >= 0) & (later < REACH) & (self.clip.unsqueeze(1) == self.clip) & (self.even > 0)
    self.spread = near * config.start_spread ** later.clamp(min=0)

  @property
  def bins(self) -> int:
    """The number of bins."""
    return len(self.even)

  def _allowed(self, size: int, *, training: bool) -> Tensor:
    """Return in which bins of `size` frames episodes may start [bins] bool."""
    index, every = self.first_frame // size, self.config.held_out
    if self.config.starts is Where.first:
      return index == 0
    held = (index % every == every // 2) if every else torch.zeros_like(index, dtype=torch.bool)
    if self.config.starts is Where.anywhere or not (held.any() or training):
      return torch.ones_like(held)
    return ~held if training else held

  def after(self, failures: Tensor, row: Tensor, failed: Tensor) -> Tensor:
    """Return failures [n, bins] after episodes that ended at rows [n], where `failed` [n] in a failure."""
    share = self.config.start_memory
    added = torch.zeros_like(failures).scatter_(1, self.bin_of_row[row].unsqueeze(1), share)
    return (1 - share) * failures + added * failed.unsqueeze(1)

  def draw(self, failures: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Return clips and frames [n] int64 for failures [n, bins] and random numbers [n, 2] in [0, 1)."""
    chances = self.chances(failures).cumsum(1)
    wanted = uniform[:, :1] * chances[:, -1:]
    chosen = (chances <= wanted).sum(1).clamp(max=self.bins - 1)
    frame = self.first_frame[chosen] + (uniform[:, 1] * self.count[chosen]).long()
    return self.clip[chosen], frame

  def chances(self, failures: Tensor) -> Tensor:
    """Return the probabilities [n, bins] of the bins for failures [n, bins]."""
    if not self.adapts:
      return self.even.expand_as(failures)
    spread = failures @ self.spread + 1e-3 * self.even
    share = self.config.start_uniform
    return share * self.even + (1 - share) * spread / spread.sum(1, keepdim=True)
