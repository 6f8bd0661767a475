"""Swimmer: a chain of links swims in a viscous fluid, nose first, to a target."""

from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import mjcf, quat, reward, suite

TRAIN = suite.TRAIN | {"max_steps": 30_000_000}
PPO = suite.PPO


@dataclass
class Config(suite.Config):
  """Settings of swimmer."""

  substeps: int = option(15, "number of physics steps per control step", low=1)
  links: int = option(6, "number of links", low=3)


class Task(suite.Task):
  """Swimmer of the suite with an action per joint, its torque, and 25 observations for 6 links."""

  outputs = ("geom_xpos", "sensordata", "xmat")
  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:
    """Return the robot file with the links behind the head, and with a target that can be moved."""
    root = suite.read("swimmer.xml")
    actuators, sensors = ET.SubElement(root, "actuator"), root.find("sensor")
    parent, bend = mjcf.find(root, "head"), 360.0 / config.links
    assert sensors is not None
    for index in range(config.links - 1):
      joint, site = f"joint_{index}", f"site_{index}"
      parent = ET.SubElement(parent, "body", name=f"segment_{index}", pos="0 .1 0")
      for kind in ("visual", "inertial"):
        ET.SubElement(parent, "geom", {"class": kind, "name": f"{kind}_{index}"})
      ET.SubElement(parent, "site", name=site)
      ET.SubElement(parent, "joint", name=joint, range=f"{-bend} {bend}")
      ET.SubElement(actuators, "motor", name=f"motor_{index}", joint=joint)
      for kind in ("velocimeter", "gyro"):
        ET.SubElement(sensors, kind, name=f"{kind}_{index}", site=site)
    mjcf.make_movable(root, "target")
    return mjcf.text(root)

  def setup(self) -> None:
    """Look up head, nose and target, and the sensors of the velocities."""
    super().setup()
    self.head = self.model.body_id("head")
    self.nose, self.target = (self.model.geom_id(name) for name in ("nose", "target"))
    self.size = float(self.model.geom_size[self.target, 0])  # radius of the target [m]
    self.first = self.model.sensor_slice("head_vel").start  # velocity and angular velocity of each link

  def initial_state(self) -> dict[str, Tensor]:
    """Start at rest with any bends, with the target near or, four times in five, far."""
    box = torch.where(self.random.uniform("near", (1,)) < 0.2, 0.3, 2.0)
    place = box * self.random.uniform("target", (2,), -1.0, 1.0)
    target = torch.cat([place, torch.full_like(box, 0.05)], dim=1)
    return super().initial_state() | {"mocap_pos": target.unsqueeze(1)}

  def to_target(self) -> Tensor:
    """Return the offset of the target from the nose in the head's frame [num_envs, 2] [m]."""
    frame = self.sim.xmat[:, self.head].unflatten(1, (3, 3))
    offset = self.sim.geom_xpos[:, self.target] - self.sim.geom_xpos[:, self.nose]
    return quat.to_body(frame, offset)[:, :2]

  def product(self) -> Tensor:
    """Reward a nose in the target, or on its way there."""
    distance, size = self.to_target().norm(dim=1), self.size
    return reward.tolerance(distance, high=size, margin=5 * size, shape="long_tail")

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the joints, the target, and the velocities of the links in their plane."""
    velocities = self.sim.sensordata[:, self.first :].unflatten(1, (self.config.links, 6))
    blocks = {
      "joints": self.sim.qpos[:, 3:],
      "to_target": self.to_target(),
      "body_velocities": torch.cat([velocities[:, :, :2], velocities[:, :, 5:]], dim=2),
    }
    return {"policy": blocks}
