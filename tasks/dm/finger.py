"""Finger: a finger with two joints spins a body on a hinge, or turns its tip to a target."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import mjcf, suite

TRAIN = suite.TRAIN | {"max_steps": 10_000_000}
PPO = suite.PPO


@dataclass
class Config(suite.DrawnConfig):
  """Settings of finger."""

  substeps: int = option(2, "number of physics steps per control step", low=1)
  target_size: float = option(0.0, "radius of the target; 0: there is none, the body is to spin", "m", low=0)
  spin_speed: float = option(15.0, "angular speed that earns the reward of spinning", "rad/s", low=0)


class Task(suite.DrawnTask):
  """Finger of the suite with 2 actions, motor torques, and 9 observations, or 12 with a target."""

  outputs = ("sensordata",)
  force_sensors = ("touchtop", "touchbottom")
  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:
    """Return the robot file with a target that can be moved, or with a hinge that turns easily."""
    root = suite.read("finger.xml")
    mjcf.find(root, "target").set("size", str(config.target_size or 0.03))
    mjcf.make_movable(root, "target")
    if not config.target_size:
      mjcf.find(root, "hinge").set("damping", "0.03")
    return mjcf.text(root)

  def setup(self) -> None:
    """Look up the circle on which targets lie."""
    super().setup()
    self.middle = self.constant(self.model.body_pos[self.model.body_id("spinner")])  # [3] [m]
    self.radius = float(self.model.geom_size[self.model.geom_id("cap1")].sum())  # [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start apart, with the target anywhere on the circle."""
    angle = self.random.uniform("target", (), -math.pi, math.pi)
    offset = self.radius * torch.stack([angle.sin(), torch.zeros_like(angle), angle.cos()], dim=1)
    return super().initial_state() | {"mocap_pos": (self.middle + offset).unsqueeze(1)}

  def from_spinner(self, site: str) -> Tensor:
    """Return x and z of a site, from the hinge of the body [num_envs, 2] [m]."""
    return (self.sensed(site) - self.sensed("spinner"))[:, ::2]

  def to_target(self) -> Tensor:
    """Return the distance of the body's tip from the rim of the target [num_envs] [m]."""
    return (self.from_spinner("target") - self.from_spinner("tip")).norm(dim=1) - self.config.target_size

  def product(self) -> Tensor:
    """Reward a tip in the target, or fast spinning."""
    if self.config.target_size:
      return (self.to_target() <= 0.0).to(torch.float32)
    return (self.sensed("hinge_velocity")[:, 0] <= -self.config.spin_speed).to(torch.float32)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the finger, the tip of the body, touch, and the target."""
    joints = ("proximal", "distal")
    blocks = {
      "position": torch.cat([self.sensed(*joints), self.from_spinner("tip")], dim=1),
      "velocity": self.sensed(*(f"{name}_velocity" for name in (*joints, "hinge"))),
      "touch": self.forces().log1p(),
    }
    if self.config.target_size:
      blocks |= {"target_position": self.from_spinner("target"), "dist_to_target": self.to_target()}
    return {"policy": blocks}
