"""Quadruped rough depth: the robot dog sees the ground ahead by a depth camera, as its teacher feels heights.

A student of a policy of `quadruped_rough` learns here by `algorithm=distill`. It has a memory, as the camera
in front sees the ground before the feet are on it (Agarwal et al. 2022, arXiv 2211.07638).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from torch import Tensor

from tasks import base, quadruped_rough
from tasks.base import option

TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 5_000_000}
PPO: dict[str, object] = {
  **quadruped_rough.PPO,
  "entropy_coef": 0.01,  # it goes on from a student, which walks
  "epochs": 2,
  "minibatches": 4,
  "recurrent": "gru",
  "recurrent_units": 64,
  "encoder_features": 64,
}
DISTILL: dict[str, object] = {"mix_steps": 500_000}
SEEN = (0.05, 2.0)  # least and greatest depth of the camera [m]


@dataclass
class Config(quadruped_rough.Config):
  """Settings of quadruped rough depth."""

  blind: bool = option(True, "policy without the height scan, which its teacher sees")
  camera_width: int = option(32, "width of the image", "pixels", low=18, high=1024)
  camera_height: int = option(24, "height of the image", "pixels", low=18, high=1024)
  camera_rate: int = option(5, "control steps from one image to the next", low=1)


class Task(quadruped_rough.Task):
  """Quadruped rough; its policy sees an image [camera_height, camera_width, 1] of depths, and no scan."""

  image_ranges: Mapping[str, tuple[float, float]] = MappingProxyType({"depth": SEEN})
  config: Config

  def setup(self) -> None:
    """Set up the camera in front of the trunk."""
    super().setup()
    size, rate = (self.config.camera_width, self.config.camera_height), self.config.camera_rate
    self.view = self.camera("front", *size, ("depth",), base.Defects(rate=rate), SEEN)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Add the image to what a blind robot feels."""
    groups = super().observe()
    return groups | {"policy": groups["policy"] | {"depth": self.view.render()["depth"]}}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange nothing: an image has no mirror."""
    return {}
