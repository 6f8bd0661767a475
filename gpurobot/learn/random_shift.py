"""Random shift of images, so that more is learnt from each (DrQ; Yarats et al. 2021, arXiv 2107.09645)."""

from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor

Uniform = Callable[[str, tuple[int]], Tensor]  # (purpose, shape) -> numbers [n, *shape] in [0, 1)


def shifted(image: Tensor, offset: Tensor) -> Tensor:
  """Return images [n, height, width, channels], moved by offsets [n, 2] of rows and columns [pixels].

  The pixels at the edge are repeated.
  """
  n, height, width, _ = image.shape
  first = torch.arange(n, device=image.device).view(n, 1, 1)
  down, right = offset.unbind(1)
  rows = (torch.arange(height, device=image.device) - down.unsqueeze(1)).clamp(0, height - 1)
  columns = (torch.arange(width, device=image.device) - right.unsqueeze(1)).clamp(0, width - 1)
  return image[first, rows.unsqueeze(2), columns.unsqueeze(1)]


class RandomShift:
  """Shift of each image by up to `pixels` in each direction; all frames of a stack move alike."""

  def __init__(self, images: Collection[str], pixels: int) -> None:
    self.images, self.pixels = images if pixels else (), pixels

  def __call__(self, obs: Mapping[str, Tensor], uniform: Uniform, which: str = "") -> None:
    """Shift the images [n, *shape] among observations in place.

    which: word for the observations, if others are shifted with the same numbers.
    """
    for name in self.images:
      unit = uniform(f"random shift of {which}{name}", (2,))
      offset = (unit * (2 * self.pixels + 1)).floor().to(torch.int64) - self.pixels
      obs[name].copy_(shifted(obs[name], offset))
