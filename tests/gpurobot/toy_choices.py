"""The toy with choices for actions: the first number says left, nothing or right, the second down or up."""

import torch

from tests.gpurobot import toy
from tests.gpurobot.toy import Config

__all__ = ["Config"]


class Task(toy.Task):
  """As the toy."""

  choices = (3, 2)

  def step(self, action):
    return super().step(torch.stack([action[:, 0] - 1, 2 * action[:, 1] - 1], 1).float())
