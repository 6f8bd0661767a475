"""Start frames of episodes: drawn more often where a motion is lost, and some held out for evaluation.

Adaptive sampling follows BeyondMimic (Liao et al. 2025, arXiv 2508.08241): clips are cut into bins, failures
are counted by bin, and a kernel spreads them to the bins before. There the counts are of all environments;
here each environment keeps its own, so that they are the same on any number of ranks. And a failure counts
where its episode started, if that was shortly before: the cause may be older than what was lost. A robot that
lands badly falls over a second later, but one that starts in that second stands.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import option
from tasks.core.errors import SettingError
from tasks.motion.library import Library

Ints = NDArray[np.int64]

REACH = 3  # bins before a failure, one of which counts it; and bins that a count is spread to


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
  start_bin: float = option(0.5, "duration of a bin of start frames, if that is not too many", "s", low=0.02)
  start_bins: int = option(128, "largest number of bins of start frames, over all clips", low=1, high=4096)
  held_out: int = option(6, "every n-th bin is held out of the starts in training; 0: none", low=0)
  # After 3.5 M steps a jump succeeds from its first frame in 0.93 and 1.00 of the episodes, with 0.2 in 0.81
  # and 0.85 (seeds 0, 1).
  start_uniform: float = option(0.5, "fraction of starts that failures do not influence", low=0.001, high=1)
  start_memory: float = option(0.1, "weight of the newest episode in the failures by bin", low=0.001, high=1)
  start_spread: float = option(0.8, "weight of a bin's failures for the bin before it", low=0, high=0.99)


class StartFrames:
  """Bins of start frames of a library, and their probabilities by the failures of each environment."""

  def __init__(self, library: Library, config: Config, margin: int, *, training: bool) -> None:
    """Cut the clips into bins; an episode has `margin` control steps or more, if its clip is long enough."""
    self.config = config
    self.adapts = training and config.starts != Where.first
    usable = np.array([max(1, count - 1 - margin) for count in library.counts])
    size = _frames_of_bin(usable, config, library.dt)
    clip, first = np.array(
      [(clip, first) for clip, count in enumerate(usable) for first in range(0, count, size)]
    ).T
    frames = np.minimum(usable[clip] - first, 1 if config.starts == Where.first else size)
    even = library.shares[clip] * frames / usable[clip] * _allowed(first // size, config, training=training)
    # Bins that these clips do not fill are never drawn: a checkpoint of other clips has as many.
    spare = (0, config.start_bins - len(clip))
    device = library.lengths.device
    self.clip, self.first_frame, self.count = (
      torch.tensor(np.pad(part, spare), device=device) for part in (clip, first, frames)
    )  # [bins] int64 each
    self.even = _constant(np.pad(even / even.sum(), spare), device)  # without failures [bins]
    rows = np.concatenate([[0], np.cumsum(library.counts)])[clip] + first
    last = np.searchsorted(rows, np.arange(len(library)), side="right") - 1
    self.bin_of_row = torch.tensor(last, device=device)  # [rows] int64
    # A start gets the failures of its bin and of those after it: failures [n, bins] @ spread [bins, bins].
    later = np.arange(len(clip))[:, None] - np.arange(len(clip))
    near = (later >= 0) & (later < REACH) & (clip[:, None] == clip) & (even > 0)
    spread = near * config.start_spread ** np.maximum(later, 0)
    self.spread = _constant(np.pad(spread, spare), device)

  @property
  def bins(self) -> int:
    """The number of bins."""
    return len(self.even)

  def after(self, failures: Tensor, first: Tensor, last: Tensor, failed: Tensor) -> Tensor:
    """Return failures [n, bins] after episodes from rows `first` to `last` [n], of which some `failed` [n].

    A failure counts in the bin of its first row, but at most REACH bins before its last row's.
    """
    share = self.config.start_memory
    chosen = torch.maximum(self.bin_of_row[first], self.bin_of_row[last] - REACH)
    added = torch.zeros_like(failures).scatter_(1, chosen.unsqueeze(1), share)
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


def _frames_of_bin(usable: Ints, config: Config, dt: float) -> int:
  """Return the frames of a bin: as the settings say, or more if the clips' usable frames need it."""
  if len(usable) > config.start_bins:
    raise SettingError(
      f"env.start_bins={config.start_bins} is less than the number of clips: write {len(usable)} or more"
    )
  size = max(1, round(config.start_bin / dt))
  while (-(-usable // size)).sum() > config.start_bins:
    size += 1
  return size


def _allowed(index: Ints, config: Config, *, training: bool) -> NDArray[np.bool_]:
  """Return in which bins episodes may start [bins], for their index in their clip [bins]."""
  every = config.held_out
  held = index % every == every // 2 if every else np.zeros(len(index), bool)
  if config.starts == Where.first:
    return index == 0
  if config.starts == Where.anywhere or not (training or held.any()):
    return np.ones(len(index), bool)
  return ~held if training else held


def _constant(values: NDArray[np.float64], device: torch.device) -> Tensor:
  return torch.tensor(values, dtype=torch.float32, device=device)
