"""The toy seen through a camera, for tests: the policy gets an image of the point, the critic its position.

A second image, of depth, is seen by both.
"""

import dataclasses
from typing import ClassVar

import torch

from gpurobot.learn.env import Image
from tests.gpurobot import toy

SIDE = 20  # pixels
PPO = toy.PPO | {"encoder_features": 8}
SAC = {"hidden": [16], "critic_hidden": [16], "encoder_features": 8, "batch_size": 64, "precision": "float32"}
TRAIN = {"num_envs": 64}


@dataclasses.dataclass
class Config(toy.Config):
  """Settings of the toy."""


class Task(toy.Task):
  """The toy with a view of the plane from above."""

  obs_dims: ClassVar = {"policy": 0, "critic": 3}
  images: ClassVar = {
    "view": Image((SIDE, SIDE, 3), "uint8", 0.0, 255.0, ("policy",)),
    "depth": Image((SIDE, SIDE, 1), "float16", 0.0, 4.0, ("policy", "critic")),
  }

  def _observe(self) -> dict[str, torch.Tensor]:
    ends = torch.linspace(-3, 3, SIDE, device=self.device)
    x, y = self.position.unbind(1)
    distance = (ends - x[:, None, None]).square() + (ends[:, None] - y[:, None, None]).square()
    view = (255 * (-4 * distance).exp()).to(torch.uint8)
    depth = (1 + distance.sqrt()).clamp(max=4.0).to(torch.float16)
    images = {"view": view.unsqueeze(-1).repeat(1, 1, 1, 3), "depth": depth.unsqueeze(-1)}
    return super()._observe() | {"policy": self.position[:, :0].clone()} | images
