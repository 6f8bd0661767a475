"""Stacker: a planar arm with a hand puts a box where the target is, on the ground or on other boxes."""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasks.base import option
from tasks.dm import manipulator
from tasks.shared import mjcf, reward, suite

TRAIN = manipulator.TRAIN
PPO = manipulator.PPO

MOST = 4  # boxes in the robot file


@dataclass
class Config(suite.DrawnConfig):
  """Settings of stacker."""

  substeps: int = option(10, "number of physics steps per control step", low=1)
  boxes: int = option(2, "number of boxes", low=1, high=MOST)


class Task(manipulator.Arm):
  """Stacker of the suite with 5 actions, motor torques, and 49 observations for 2 boxes."""

  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:
    """Return the robot file with as many boxes, and with a target that can be moved."""
    root = suite.read("stacker.xml")
    mjcf.remove(root, *(f"box{index}" for index in range(config.boxes, MOST)))
    mjcf.make_movable(root, "target")
    return mjcf.text(root)

  @classmethod
  def draw(cls, model: Any, random: np.random.Generator, count: int) -> suite.Arrays:
    """Draw arm, boxes and target."""
    states, size = cls.arms(model, random, count), model.geom_size[model.geom_id("target"), 0]
    boxes = (model.nq - len(manipulator.ARM)) // 3
    states["mocap_pos"][:, 0, 0] = random.uniform(-0.37, 0.37, count)
    states["mocap_pos"][:, 0, 2] = size * (2 * random.integers(boxes, size=count) + 1)
    places = random.uniform((0.1, 0.0, 0.0), (0.3, 0.7, 2 * np.pi), (count, boxes, 3))
    states["qpos"][:, -3 * boxes :] = places.reshape(count, -1)
    return suite.apart(model, states)

  def setup(self) -> None:
    """Look up the boxes and the target."""
    super().setup()
    self.names = [f"box{index}" for index in range(self.config.boxes)]
    self.boxes, self.target = self.body_of(*self.names), self.model.body_id("target")
    joints = [f"{name}_{axis}" for name in self.names for axis in "xyz"]
    self.box_qvel = self.joints_of(*joints)[1]
    self.size = float(self.model.geom_size[self.model.geom_id("target"), 0])  # of half a box [m]

  def product(self) -> Tensor:
    """Reward a box in the target, with the hand away from it."""
    nearest = torch.stack([self.distance(name, "target") for name in self.names]).amin(0)
    away = reward.tolerance(self.distance("grasp", "target"), 0.1, inf, margin=manipulator.CLOSE)
    return reward.tolerance(nearest, margin=2 * self.size) * away

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return arm, touch, hand, boxes and target."""
    blocks = {
      "box_pos": self.pose(self.boxes),
      "box_vel": self.sim.qvel[:, self.box_qvel],
      "target_pos": self.sim.xpos[:, self.target, ::2],
    }
    return {"policy": self.arm() | blocks}
