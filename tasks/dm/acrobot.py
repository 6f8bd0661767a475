"""Acrobot: two poles, with a motor between them alone, swing up and balance."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import reward, suite

TRAIN = suite.TRAIN | {"max_steps": 30_000_000}
PPO = suite.PPO


@dataclass
class Config(suite.Config):
  """Settings of acrobot."""

  substeps: int = option(1, "number of physics steps per control step", low=1)
  sparse: bool = option(False, "whether only a tip in the target earns a reward")


class Task(suite.Task):
  """Acrobot of the suite with 1 action, the torque of the elbow, and 6 observations."""

  robot = suite.FOLDER / "acrobot.xml"
  outputs = ("site_xpos", "xmat")
  config: Config

  def setup(self) -> None:
    """Look up the arms, the tip and the target."""
    super().setup()
    self.arms = self.body_of("upper_arm", "lower_arm")
    self.tip, self.target = (self.model.site_id(name) for name in ("tip", "target"))
    self.radius = float(self.model.site_size[self.target, 0])  # of the target [m]

  def product(self) -> Tensor:
    """Reward a tip in or near the target."""
    distance = (self.sim.site_xpos[:, self.target] - self.sim.site_xpos[:, self.tip]).norm(dim=1)
    return reward.tolerance(distance, high=self.radius, margin=0.0 if self.config.sparse else 1.0)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the directions of the arms and the speeds of the joints."""
    arms = self.sim.xmat[:, self.arms]
    directions = torch.cat([arms[:, :, suite.XZ], arms[:, :, suite.ZZ]], dim=1)
    return {"policy": {"orientations": directions, "velocity": self.sim.qvel}}
