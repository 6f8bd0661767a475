"""The toy whose policy does not see where the point is along y; its teacher sees both."""

from typing import ClassVar

from tests.gpurobot import toy
from tests.gpurobot.toy import PPO, TRAIN, Config

__all__ = ["PPO", "TRAIN", "Config"]


class Task(toy.Task):
  """As the toy."""

  obs_dims: ClassVar = {"policy": 1, "critic": 3}

  def _observe(self):
    groups = super()._observe()
    return groups | {"teacher": groups["policy"], "policy": groups["policy"][:, :1]}
