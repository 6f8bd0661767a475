"""Quadruped: a robot with four legs and 12 servos walks or runs, or brings a ball to the middle."""

import math
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import mjcf, quat, reward, suite

TRAIN = suite.TRAIN | {"max_steps": 50_000_000}
PPO = suite.PPO | {"hidden": [256, 256]}

TOES = tuple(f"toe_{toe}" for toe in ("front_left", "front_right", "back_right", "back_left"))
WALLS = ("wall_px", "wall_py", "wall_nx", "wall_ny")
# A robot starts at the lowest of these without contact [m], which are added up as dm_control does it.
HEIGHTS = np.cumsum([0.0, *[0.01] * 200])


@dataclass
class Config(suite.DrawnConfig):
  """Settings of quadruped."""

  substeps: int = option(4, "number of physics steps per control step", low=1)
  speed: float = option(0.5, "speed that earns the full reward", "m/s", low=0)
  fetch: bool = option(False, "whether it is to bring a ball to the middle of an arena, whatever its speed")


class Task(suite.DrawnTask):
  """Quadruped of the suite with 12 actions, targets of servos, and 78 observations, or 90 with a ball."""

  outputs = ("sensordata", "site_xpos", "xmat", "xpos")
  force_sensors = ("imu_accel", *(f"{kind}_{toe}" for kind in ("force", "torque") for toe in TOES))
  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:
    """Return the robot file on flat ground, in an arena with a ball or without both."""
    root = suite.read("quadruped.xml")
    mjcf.remove(root, "terrain", *(() if config.fetch else (*WALLS, "ball", "target")))
    sensors = root.find("sensor")
    assert sensors is not None
    for sensor in sensors.findall("rangefinder"):
      sensors.remove(sensor)
    if not config.fetch:
      side = config.speed * 20.0  # an episode has 20 s
      mjcf.find(root, "floor").set("size", f"{side} {side} .5")
    return mjcf.text(root)

  @classmethod
  def draw(cls, model: Any, random: np.random.Generator, count: int) -> suite.Arrays:
    """Draw orientations, and the lowest height that touches nothing; with a ball, also where both are."""
    qpos, qvel = np.tile(model.qpos0, (count, 1)), np.zeros((count, model.nv))
    turn = random.normal(size=(count, 4))
    if model.nq > 7 + 16:  # a free joint and hinges, and the free joint of a ball
      heading = random.uniform(0.0, math.pi, count)
      turn = np.stack([np.cos(heading), 0 * heading, 0 * heading, np.sin(heading)], axis=1)
      reach = 0.9 * model.geom_size[model.geom_id("floor"), 0]
      qpos[:, :2], qpos[:, -7:-5] = random.uniform(-reach, reach, (2, count, 2))
      qpos[:, -5], qvel[:, -6:-4] = 2.0, 5.0 * random.normal(size=(count, 2))
    qpos[:, 3:7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    touching, free = np.full(count, -1), np.full(count, len(HEIGHTS) - 1)  # indices of HEIGHTS
    while (free - touching).max() > 1:
      middle = (touching + free) // 2
      qpos[:, 2] = HEIGHTS[middle]
      contacts = suite.evaluate(model, {"qpos": qpos}, ["ncon"])["ncon"] > 0
      touching, free = np.where(contacts, middle, touching), np.where(contacts, free, middle)
    qpos[:, 2] = HEIGHTS[free]
    return {"qpos": qpos, "qvel": qvel}

  def setup(self) -> None:
    """Look up the torso; of an arena, its parts and sizes."""
    super().setup()
    model = self.model
    self.torso = model.body_id("torso")
    if self.config.fetch:
      self.ball = model.body_id("ball")
      self.target, self.workspace = (model.site_id(name) for name in ("target", "workspace"))
      self.arena_radius = math.sqrt(2) * float(model.geom_size[model.geom_id("floor"), 0])  # [m]
      self.reach = float(
        model.site_size[self.workspace, 0] + model.geom_size[model.geom_id("ball"), 0]
      )  # [m]
      self.target_radius = float(model.site_size[self.target, 0])  # [m]

  def product(self) -> Tensor:
    """Reward an upright torso, and speed or a ball near the robot and near the middle."""
    upright = reward.tolerance(
      self.sim.xmat[:, self.torso, suite.ZZ], 1.0, inf, margin=2.0, shape="linear", at_margin=0.0
    )
    if self.config.fetch:
      return upright * self.fetching()
    speed, fast = self.sensed("velocimeter")[:, 0], self.config.speed
    return upright * reward.tolerance(speed, fast, inf, margin=fast, shape="linear", at_margin=0.5)

  def fetching(self) -> Tensor:
    """Return the reward for a ball near the robot, and twice as much with it near the target [num_envs]."""
    near, there = self.nearness(self.workspace, self.reach), self.nearness(self.target, self.target_radius)
    return near * (1 + there) / 2

  def nearness(self, site: int, radius: float) -> Tensor:
    """Return a reward for a ball within a radius of a site, less for one that is further away [num_envs]."""
    distance = (self.sim.site_xpos[:, site, :2] - self.sim.xpos[:, self.ball, :2]).norm(dim=1)
    margin = self.arena_radius
    return reward.tolerance(distance, high=radius, margin=margin, shape="linear", at_margin=0.0)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return joints, servos, velocity, tilt, sensors of the torso and the toes, ball and target."""
    state = [self.sim.qpos[:, 7 : 7 + 16], self.sim.qvel[:, 6 : 6 + 16], self.sim.act]
    forces = self.forces()
    blocks = {
      "egocentric_state": torch.cat(state, dim=1),
      "torso_velocity": self.sensed("velocimeter"),
      "torso_upright": self.sim.xmat[:, self.torso, suite.ZZ],
      "imu": torch.cat([forces[:, :3], self.sensed("imu_gyro")], dim=1),
      "force_torque": forces[:, 3:].asinh(),
    }
    return {"policy": blocks | (self.arena() if self.config.fetch else {})}

  def arena(self) -> dict[str, Tensor]:
    """Return the observation blocks of ball and target, in the torso's frame."""
    frame, torso = self.sim.xmat[:, self.torso].unflatten(1, (3, 3)), self.sim.xpos[:, self.torso]
    speed, spin = self.sim.qvel[:, -6:].split(3, dim=1)
    vectors = [self.sim.xpos[:, self.ball] - torso, speed - self.sim.qvel[:, :3], spin]
    return {
      "ball_state": quat.to_body(frame.unsqueeze(1), torch.stack(vectors, dim=1)),
      "target_position": quat.to_body(frame, self.sim.site_xpos[:, self.target] - torso),
    }
