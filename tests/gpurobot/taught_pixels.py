"""The toy seen through a camera, whose teacher is told where the point is."""

from typing import ClassVar

from tests.gpurobot import toy, toy_pixels
from tests.gpurobot.toy_pixels import PPO, TRAIN, Config

__all__ = ["PPO", "TRAIN", "Config"]


class Task(toy_pixels.Task):
  """As the toy with images, and the group of a teacher that sees what the toy shows its policy."""

  obs_dims: ClassVar = {"policy": 0, "critic": 3}

  def _observe(self):
    return super()._observe() | {"teacher": toy.Task._observe(self)["policy"]}
