"""Reacher: a planar arm with two motors moves its fingertip to a target."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import mjcf, reward, suite

TRAIN = suite.TRAIN | {"max_steps": 10_000_000}
PPO = suite.PPO


@dataclass
class Config(suite.Config):
  """Settings of reacher."""

  substeps: int = option(1, "number of physics steps per control step", low=1)
  target_size: float = option(0.05, "radius of the target", "m", low=0)


class Task(suite.Task):
  """Reacher of the suite with 2 actions, motor torques, and 6 observations."""

  outputs = ("geom_xpos",)
  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:
    """Return the robot file with a target of the size that the settings say, and that can be moved."""
    root = suite.read("reacher.xml")
    mjcf.find(root, "target").set("size", str(config.target_size))
    mjcf.make_movable(root, "target")
    return mjcf.text(root)

  def setup(self) -> None:
    """Look up finger and target."""
    super().setup()
    self.finger, self.target = (self.model.geom_id(name) for name in ("finger", "target"))
    self.radii = float(self.model.geom_size[[self.target, self.finger], 0].sum())  # [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start at rest in any pose, with the target anywhere around the arm."""
    angle = self.random.uniform("target angle", (), 0.0, 2 * math.pi)
    radius = self.random.uniform("target distance", (), 0.05, 0.2)
    height = torch.full_like(angle, 0.01)
    target = torch.stack([radius * angle.sin(), radius * angle.cos(), height], dim=1)
    return super().initial_state() | {"mocap_pos": target.unsqueeze(1)}

  def to_target(self) -> Tensor:
    """Return the offset of the target from the finger along x and y [num_envs, 2] [m]."""
    return (self.sim.geom_xpos[:, self.target] - self.sim.geom_xpos[:, self.finger])[:, :2]

  def product(self) -> Tensor:
    """Reward a finger that touches the target."""
    return reward.tolerance(self.to_target().norm(dim=1), high=self.radii)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the state of the arm, and the offset of the target."""
    blocks = {"position": self.sim.qpos, "to_target": self.to_target(), "velocity": self.sim.qvel}
    return {"policy": blocks}
