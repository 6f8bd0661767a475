"""The toy with a style: its points' positions, of which the reference knows those that rest at SPOT."""

import torch

from tests.gpurobot import toy
from tests.gpurobot.toy import TRAIN, Config

__all__ = ["PPO", "SPOT", "TRAIN", "Config", "Task"]
SPOT, SPREAD = (0.8, -0.4), 0.1  # mean and standard deviation of the reference [m]
PPO = toy.PPO | {"amp.style_weight": 1.0, "amp.hidden": [16]}


class Task(toy.Task):
  """Points that are pushed towards the origin by the reward, and towards SPOT by the style."""

  def __init__(self, config, num_envs, device="cpu", **options):
    super().__init__(config, num_envs, device, **options)
    scatter = torch.randn(100, 1, 2, generator=torch.Generator().manual_seed(0))
    self.style_reference = (torch.tensor(SPOT) + SPREAD * scatter).expand(-1, 2, -1).contiguous()

  def _observe(self):
    return super()._observe() | {"style": self.position.clone()}
