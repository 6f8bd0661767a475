"""Cart-pole: a cart on a rail balances one to three poles, or swings them up first."""

from dataclasses import dataclass
from math import pi
from typing import Any
from xml.etree import ElementTree as ET

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import mjcf, reward, suite

TRAIN = suite.TRAIN | {"max_steps": 10_000_000}
# In a shared trunk the critic's gradients undo what the policy has learnt (docs/ablations.md).
PPO = suite.PPO | {"shared": False}


@dataclass
class Config(suite.Config):
  """Settings of cart-pole."""

  substeps: int = option(1, "number of physics steps per control step", low=1)
  swing_up: bool = option(False, "whether the poles hang at the start, and do not stand")
  sparse: bool = option(False, "whether only a cart in the middle under upright poles earns a reward")
  poles: int = option(1, "number of poles, one on top of the other", low=1)


class Task(suite.Task):
  """Cart-pole of the suite with 1 action, the force on the cart, and 5 observations for one pole."""

  outputs = ("xmat",)
  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:
    """Return the robot file with further poles, and with the floor below them all."""
    root = suite.read("cartpole.xml")
    for index in range(2, config.poles + 1):
      below, hinge = mjcf.find(root, f"pole_{index - 1}"), f"hinge_{index}"
      pole = ET.SubElement(below, "body", name=f"pole_{index}", pos="0 0 1", childclass="pole")
      ET.SubElement(pole, "joint", name=hinge)
      ET.SubElement(pole, "geom", name=f"pole_{index}")
    mjcf.find(root, "floor").set("pos", f"0 0 {0.95 - config.poles}")
    return mjcf.text(root)

  def setup(self) -> None:
    """Store where cart and poles start, and how far from it."""
    super().setup()
    above = self.config.poles - 1
    self.home = self.constant([0.0, pi if self.config.swing_up else 0.0, *[0.0] * above])  # [nq]
    spread = [0.01, 0.01, *[0.1] * above] if self.config.swing_up else [0.1, *[0.034] * (above + 1)]
    self.spread = self.constant(spread)  # [nq]

  def initial_state(self) -> dict[str, Tensor]:
    """Start with the cart near the middle, and with the poles nearly at rest."""
    shape, normal = (self.model.nq,), self.random.normal
    if self.config.swing_up:
      offset = normal("start position", shape)
    else:
      offset = self.random.uniform("start position", shape, -1.0, 1.0)
    return {"qpos": self.home + self.spread * offset, "qvel": 0.01 * normal("start velocity", shape)}

  def product(self) -> Tensor:
    """Reward upright poles, and, unless it is sparse, a cart in the middle, small controls and speeds."""
    cart, upright = self.sim.qpos[:, 0], self.sim.xmat[:, 2:, suite.ZZ]
    if self.config.sparse:
      centered = reward.tolerance(cart, -0.25, 0.25)
      return centered * reward.tolerance(upright, 0.995, 1.0).prod(1)
    centered = (1 + reward.tolerance(cart, margin=2.0)) / 2
    slow = (1 + reward.tolerance(self.sim.qvel[:, 1:], margin=5.0).amin(1)) / 2
    return ((1 + upright) / 2).mean(1) * centered * slow * suite.small(self.sim.ctrl)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the position of the cart, the directions of the poles and the velocities."""
    directions = suite.lean(self.sim.xmat[:, 2:]).flatten(1)
    position = torch.cat([self.sim.qpos[:, :1], directions], dim=1)
    return {"policy": {"position": position, "velocity": self.sim.qvel}}
