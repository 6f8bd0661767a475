"""Encoders: convolutional networks that turn the images of an observation group into features."""

import math
from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor, nn

from gpurobot.learn.env import Image
from gpurobot.learn.layers import linear, orthogonal
from gpurobot.settings.algorithms import Encoder, OffPolicyConfig, PPOConfig

LARGE = 64  # pixels of the shorter side from which the first layer of NatureCNN has its own stride


def nature(image: Image) -> nn.Sequential:
  """Return the convolutions of NatureCNN (Mnih et al. 2015); their ReLU are in place.

  They were made for 84 x 84 pixels. Below 64 the first layer has half the width and stride.
  """
  height, width, channels = image.shape
  kernel, stride = (8, 4) if min(height, width) >= LARGE else (4, 2)
  layers: list[nn.Module] = []
  for filters, size, step in ((32, kernel, stride), (64, 4, 2), (64, 3, 1)):
    layers += [orthogonal(nn.Conv2d(channels, filters, size, step), math.sqrt(2)), nn.ReLU(inplace=True)]
    channels = filters
  return nn.Sequential(*layers)


class Residual(nn.Module):
  """Residual block [n, channels, height, width] of two convolutions, each after a ReLU (He et al. 2016)."""

  def __init__(self, channels: int) -> None:
    super().__init__()
    first, second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
    # At the start the block is nearly the identity.
    self.layers = nn.Sequential(
      nn.ReLU(), orthogonal(first, math.sqrt(2)), nn.ReLU(inplace=True), orthogonal(second, 0.1)
    )

  def forward(self, x: Tensor) -> Tensor:
    """Return x plus the residual."""
    return x + self.layers(x)


def resnet(image: Image) -> nn.Sequential:
  """Return the residual network of IMPALA (Espeholt et al. 2018, arXiv 1802.01561): three halved sections."""
  channels = image.shape[2]
  layers: list[nn.Module] = []
  for filters in (16, 32, 32):
    layers += [orthogonal(nn.Conv2d(channels, filters, 3, padding=1), 1.0), nn.MaxPool2d(3, 2, 1)]
    layers += [Residual(filters), Residual(filters)]
    channels = filters
  return nn.Sequential(*layers, nn.ReLU(inplace=True))


CONVOLUTIONS: dict[Encoder, Callable[[Image], nn.Sequential]] = {
  Encoder.nature: nature,
  Encoder.resnet: resnet,
}
SMALLEST = {Encoder.nature: 18, Encoder.resnet: 5}  # pixels of the shorter side


class ImageEncoder(nn.Module):
  """Encoder of one image [..., height, width, channels] to features [..., width].

  Its range is mapped to [0, 1]. The channels are the last dimension in memory, which is the faster layout on
  a CPU too: of 256 images of 64 x 64 x 3, forward and backward took NatureCNN 0.48 s and 0.69 s in the other.
  """

  def __init__(self, image: Image, kind: Encoder, features: int) -> None:
    super().__init__()
    self.shift, self.scale = image.low, 1 / (image.high - image.low)
    self.convolutions = CONVOLUTIONS[kind](image)
    with torch.no_grad():
      outputs = self.convolutions(torch.zeros(1, *image.shape).permute(0, 3, 1, 2)).numel()
    self.output = linear(outputs, features, math.sqrt(2))

  def forward(self, image: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the features [..., width] of an image as it is stored, computed in a type.

    bf16 holds each number of uint8.
    """
    x = image.flatten(0, -4).permute(0, 3, 1, 2).to(dtype).sub(self.shift).mul(self.scale)
    with torch.autocast(x.device.type, torch.bfloat16, enabled=dtype is torch.bfloat16):
      x = self.convolutions(x).permute(0, 2, 3, 1).flatten(1)
      return torch.relu(self.output(x)).to(dtype).unflatten(0, image.shape[:-3])


class GroupInput(nn.Module):
  """What the trunk of an observation group gets: its numbers, joined with the features of its images."""

  def __init__(
    self,
    group: str,
    width: int,
    images: Mapping[str, Image],
    settings: PPOConfig | OffPolicyConfig,
    others: "GroupInput | None" = None,
  ) -> None:
    """Take the encoders of images that another group sees too from there, and build the others."""
    super().__init__()
    self.group, self.has_numbers = group, width > 0
    self.images = [name for name, image in images.items() if group in image.groups]
    kind, features = settings.encoder or Encoder.nature, settings.encoder_features
    self.encoders = nn.ModuleList()
    for name in self.images:
      if others and name in others.images:
        self.encoders.append(others.encoders[others.images.index(name)])
      else:
        self.encoders.append(ImageEncoder(images[name], kind, features))
    self.width = width + features * len(self.images)

  def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
    """Return [..., width] of normalised groups and stored images [..., *shape], in the type of the group."""
    x = obs[self.group]
    if not self.images:
      return x
    pairs = zip(self.images, self.encoders, strict=True)
    features = [encoder(obs[name], x.dtype) for name, encoder in pairs]
    return torch.cat([x, *features] if self.has_numbers else features, dim=-1)


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
