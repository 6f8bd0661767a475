"""Point mass: a mass in a plane moves to the middle by two forces; their directions may be unknown."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import mjcf, reward, suite

TRAIN = suite.TRAIN | {"max_steps": 5_000_000}
PPO = suite.PPO

ALIGNED = 0.9  # cosine of the smallest angle between the lines of the two forces


@dataclass
class Config(suite.Config):
  """Settings of point mass."""

  substeps: int = option(1, "number of physics steps per control step", low=1)
  random_directions: bool = option(False, "whether each episode has other directions of the forces")


class Task(suite.Task):
  """Point mass of the suite with 2 actions, the forces, and 4 observations."""

  outputs = ("geom_xpos",)
  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:  # noqa: ARG003
    """Return the robot file without limits of the controls, which add up along an axis."""
    root = suite.read("point_mass.xml")
    for motor in root.iterfind("default/motor"):
      motor.set("ctrllimited", "false")
    return mjcf.text(root)

  def setup(self) -> None:
    """Look up mass and target; create a buffer for the directions."""
    super().setup()
    self.mass, self.target = (self.model.geom_id(name) for name in ("pointmass", "target"))
    self.size = float(self.model.geom_size[self.target, 0])  # radius of the target [m]
    self.directions = self.buffer(2, 2)  # of each force, along x and y [num_envs, 2, 2]

  def initial_state(self) -> dict[str, Tensor]:
    """Start at rest anywhere, with new directions of the forces."""
    if self.config.random_directions:
      first, least = self.random.uniform("direction", (), -math.pi, math.pi), math.acos(ALIGNED)
      between = self.random.uniform("angle between", (), least, math.pi - least)
      side = torch.where(self.random.uniform("side", ()) < 0.5, -1.0, 1.0)
      angles = torch.stack([first, first + side * between], dim=1)
      directions = torch.stack([angles.cos(), angles.sin()], dim=2)
    else:
      directions = torch.eye(2, device=self.device).expand(self.num_envs, 2, 2)
    return super().initial_state() | {"directions": directions}

  def control(self) -> None:
    """Add the forces up."""
    self.sim.ctrl.copy_((self.action.unsqueeze(2) * self.directions).sum(1))

  def product(self) -> Tensor:
    """Reward a mass in or near the target, and small actions."""
    distance = (self.sim.geom_xpos[:, self.target] - self.sim.geom_xpos[:, self.mass]).norm(dim=1)
    return reward.tolerance(distance, high=self.size, margin=self.size) * suite.small(self.action)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the state."""
    return {"policy": {"position": self.sim.qpos, "velocity": self.sim.qvel}}
