"""The hopping box, whose policy sees two images: colours from above, and three frames of depths."""

from dataclasses import dataclass
from types import MappingProxyType

from tasks import base
from tests.gpurobot import hopping_box
from tests.gpurobot.hopping_box import TRAIN

__all__ = ["TRAIN"]
PPO = hopping_box.PPO | {"encoder_features": 8}


@dataclass
class Config(hopping_box.Config):
  """Settings of the box that is seen."""

  stack_depth: int = base.option(3, "number of frames", low=1)


class Task(hopping_box.Task):
  """It sees itself, and its command."""

  image_ranges = MappingProxyType({"depth": (1.0, 5.0)})
  config: Config

  def setup(self):
    super().setup()
    self.above = self.camera("above", 32, 20, ("rgb", "depth"), depths=(0.1, 10.0))

  def observe(self):
    seen = self.above.render()
    return {"policy": super().observe()["policy"] | {"view": seen["rgb"], "depth": seen["depth"]}}
