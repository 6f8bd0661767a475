"""Cartpole with a motor that now and then is infinitely strong, for tests of what is kept then."""

import torch

from tasks import cartpole
from tasks.cartpole import PPO, TRAIN, Config

__all__ = ["PPO", "TRAIN", "Config", "Task"]


class Task(cartpole.Task):
  """One environment in four breaks in its third step, and again in every fifth."""

  def setup(self):
    super().setup()
    self.age = self.buffer(dtype=torch.int64, lasting=True)

  def update(self):
    super().update()
    self.age += 1
    breaks = (self.age % 5 == 3) & (torch.arange(self.num_envs, device=self.device) % 4 == 1)
    self.sim.qvel.masked_fill_(breaks.unsqueeze(1), torch.inf)
