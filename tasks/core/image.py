"""Images among the observations: which blocks are images, their ranges, and how they are stored."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from tasks.core.errors import TaskError

Range = tuple[float, float]


class Image(NamedTuple):
  """Image [num_envs, *shape] that observation groups share, with the fields of the trainer's."""

  shape: tuple[int, int, int]  # height, width, channels
  kind: str  # uint8 or float16, as it is stored
  low: float  # smallest number
  high: float  # largest number
  groups: tuple[str, ...]  # those that see it

  def stored(self, block: Tensor) -> Tensor:
    """Return a copy of a block [num_envs, *shape] as it is stored; what lies outside of the range is cut off.

    So infinity, as of a ray that hits nothing, becomes the end of the range; nan stays.
    """
    return block.clone() if self.kind == "uint8" else block.clamp(self.low, self.high).to(torch.float16)

  def stacked(self, frames: int) -> "Image":
    """Return the image with the channels of several frames."""
    height, width, channels = self.shape
    return self._replace(shape=(height, width, frames * channels))


def is_image(block: Tensor) -> bool:
  """Return whether a block is an image [num_envs, height, width, channels]."""
  return block.ndim == 4


def find_images(blocks: Mapping[str, Mapping[str, Tensor]], ranges: Mapping[str, Range]) -> dict[str, Image]:
  """Return the images among blocks by name; raise TaskError if one has no known range, or is not unique.

  ranges: smallest and largest number of each image that is not uint8.
  """
  found: dict[str, Image] = {}
  for group, named in blocks.items():
    for name, block in named.items():
      if not is_image(block):
        continue
      if name in blocks:
        raise TaskError(f"observe() '{group}' '{name}': the image is named like a group; rename it")
      others = found[name].groups if name in found else ()
      if any(blocks[other][name] is not block for other in others):
        raise TaskError(
          f"observe() returns two images '{name}': give both groups the same tensor, or the images two names"
        )
      kind, low, high = _numbers(name, block, ranges)
      height, width, channels = block.shape[1:]
      found[name] = Image((height, width, channels), kind, low, high, (*others, group))
  return found


def _numbers(name: str, block: Tensor, ranges: Mapping[str, Range]) -> tuple[str, float, float]:
  """Return the type in which an image is stored, and its range."""
  if block.dtype is torch.uint8:
    return "uint8", 0.0, 255.0
  if not block.is_floating_point():
    raise TaskError(f"observe() '{name}' is an image of {block.dtype}: make it uint8, or float with a range")
  if name not in ranges:
    raise TaskError(
      f"observe() '{name}' is an image of {block.dtype} without a range: "
      f"write image_ranges = {{'{name}': (low, high)}}"
    )
  low, high = ranges[name]
  if not -65504 <= low < high <= 65504:  # what float16 holds
    raise TaskError(f"image_ranges['{name}'] = {(low, high)}: write (low, high) within +-65504")
  return "float16", float(low), float(high)
