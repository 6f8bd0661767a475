"""LQR: masses on springs, some with motors, come to rest in the middle; the best control is known."""

from dataclasses import dataclass
from math import sqrt
from typing import Any
from xml.etree import ElementTree as ET

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import mjcf, suite

TRAIN = suite.TRAIN | {"max_steps": 5_000_000}
PPO = suite.PPO


@dataclass
class Config(suite.Config):
  """Settings of LQR. dm_control limits neither time nor force; here both are settings."""

  substeps: int = option(1, "number of physics steps per control step", low=1)
  masses: int = option(2, "number of masses, each on top of the one before", low=1)
  motors: int = option(1, "number of masses with motors, the first ones", low=1)
  force: float = option(1.0, "largest force of a motor", "N", low=0)
  cost: float = option(0.1, "cost of half the squared forces, beside half the squared positions", low=0)


class Task(suite.Task):
  """LQR of the suite with an action per motor, its force, and two observations per mass."""

  outputs = ()
  vary = ("jnt_stiffness",)
  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:
    """Return the robot file with its masses."""
    root = suite.read("lqr.xml")
    actuators, parent = ET.SubElement(root, "actuator"), root.find("worldbody")
    for index in range(config.masses):
      assert parent is not None
      place, joint = f".25 0 {0 if index else 0.1}", f"joint_{index}"
      parent = ET.SubElement(parent, "body", name=f"body_{index}", pos=place)
      ET.SubElement(parent, "joint", name=joint, stiffness="20")
      ET.SubElement(parent, "geom", name=f"geom_{index}")
      if index < config.motors:
        ET.SubElement(actuators, "motor", name=f"motor_{index}", joint=joint)
    return mjcf.text(root)

  def initial_state(self) -> dict[str, Tensor]:
    """Start at rest, at a distance of sqrt(2) from the middle, with new springs."""
    offset = self.random.normal("start", (self.model.nq,))
    stiffness = self.random.uniform("stiffness", (self.model.njnt,), 15.0, 25.0)
    return {"qpos": sqrt(2) * offset / offset.norm(dim=1, keepdim=True), "jnt_stiffness": stiffness}

  def control(self) -> None:
    """Map the actions onto forces."""
    self.sim.ctrl.copy_(self.config.force * self.action)

  def product(self) -> Tensor:
    """Return 1 less the cost of positions and forces."""
    effort = self.sim.ctrl.square().sum(1)
    return 1 - (self.sim.qpos.square().sum(1) + self.config.cost * effort) / 2

  def terminated(self) -> Tensor:
    """End where the masses rest in the middle."""
    return torch.cat([self.sim.qpos, self.sim.qvel], dim=1).norm(dim=1) < 1e-6

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the state."""
    return {"policy": {"position": self.sim.qpos, "velocity": self.sim.qvel}}
