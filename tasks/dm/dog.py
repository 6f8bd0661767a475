"""Dog: a dog with 38 muscles stands, walks, trots or runs, or brings a ball to the middle."""

import math
from dataclasses import dataclass
from math import inf
from typing import Any

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import mjcf, quat, reward, suite

TRAIN = suite.TRAIN | {"max_steps": 100_000_000}
PPO = suite.PPO | {"hidden": [256, 256], "log_std_init": -1.0}

WALLS = ("wall_px", "wall_py", "wall_nx", "wall_ny")
SECONDS = 15.0  # duration of an episode
UPRIGHT = math.cos(math.radians(30.0))  # a tilt of 30 degrees earns the full reward
TOUCH, FORCES = ("palm_L", "palm_R", "sole_L", "sole_R"), ("foot_L", "foot_R", "hand_L", "hand_R")


@dataclass
class Config(suite.Config):
  """Settings of dog."""

  substeps: int = option(3, "number of physics steps per control step", low=1)
  speed: float = option(1.0, "speed that earns the full reward; 0: to stand", "m/s", low=0)
  fetch: bool = option(False, "whether it is to bring a ball to the middle of an arena")
  height: float = option(0.9, "height that earns the full reward, relative to standing", low=0)


class Task(suite.Task):
  """Dog of the suite with 38 actions, which muscles follow, and 223 observations, or 232 with a ball."""

  outputs = ("geom_xpos", "sensordata", "site_xmat", "site_xpos", "xmat", "xpos")
  force_sensors = ("accelerometer", *FORCES, *TOUCH)
  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:
    """Return the robot file, in an arena with a ball or without both."""
    root = suite.read("dog.xml")
    if not config.fetch:
      mjcf.remove(root, "ball", "head", "target", *WALLS)
      side = SECONDS * max(config.speed, 1.0)
      mjcf.find(root, "floor").set("size", f"{side} {side} .1")
    return mjcf.text(root)

  def setup(self) -> None:
    """Look up the parts of the dog and of the arena; store height and weight."""
    super().setup()
    model = self.model
    self.torso, self.pelvis, self.skull = (model.body_id(name) for name in ("torso", "pelvis", "skull"))
    standing = suite.evaluate(model, {"qpos": model.qpos0[None]}, ["xpos"])["xpos"][0, :, 2]
    self.heights = [self.config.height * float(standing[body]) for body in (self.torso, self.pelvis)]
    self.weight = float(-model.gravity[2] * model.mj.body_subtreemass[self.torso])  # [N]
    self.hinges = model.nq - 7 - (7 if self.config.fetch else 0)
    self.home = self.constant(model.qpos0)  # [nq]
    self.muscle_range = self.constant(model.actuator_ctrlrange.T)  # [2, nu]
    if self.config.fetch:
      self.ball, self.target = model.geom_id("ball"), model.geom_id("target")
      names = ("head", "upper_bite", "lower_bite")
      self.head, *self.bite = (model.site_id(name) for name in names)
      self.bite_radius = float(model.site_size[self.bite[0], 0])  # [m]
      self.size = float(model.geom_size[self.target, 0])  # radius of the target [m]
      self.arena_size = float(model.geom_size[model.geom_id("floor"), 0])  # half a side [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start standing with any heading, pushed and turned, with muscles that pull; the ball flies inwards."""
    uniform, normal = self.random.uniform, self.random.normal
    half, zero = uniform("heading", (1,), 0.0, math.pi), torch.zeros(self.num_envs, 1, device=self.device)
    root = [self.home[:3].expand(self.num_envs, 3), half.cos(), zero, zero, half.sin()]
    rest = self.home[7 : 7 + self.hinges].expand(self.num_envs, -1)
    push = 2 * normal("push", (3,))
    still = zero.expand(self.num_envs, 3), zero.expand(self.num_envs, self.hinges)
    qpos, qvel = [*root, rest], [push[:, :2], still[0], push[:, 2:], still[1]]
    if self.config.fetch:
      place, velocity = self.thrown()
      qpos += [place, self.home[-4:].expand(self.num_envs, 4)]
      qvel += [velocity, still[0]]
    low, high = self.muscle_range
    act = low + (high - low) * uniform("muscles", (self.model.na,))
    return {"qpos": torch.cat(qpos, dim=1), "qvel": torch.cat(qvel, dim=1), "act": act}

  def thrown(self) -> tuple[Tensor, Tensor]:
    """Return the start position [num_envs, 3] [m] and velocity [m/s] of the ball."""
    angle = self.random.uniform("ball angle", (), 0.0, 2 * math.pi)
    outwards = torch.stack([angle.sin(), angle.cos()], dim=1)
    peak = self.random.uniform("ball peak", (1,), 0.0, 3.0)  # height that it reaches [m]
    aim = 0.05 * self.random.normal("ball aim", (2,)) - outwards
    speed = self.random.uniform("ball speed", (1,), 0.0, 5.0)
    up = (-2 * float(self.model.gravity[2]) * peak).sqrt()
    return torch.cat([0.75 * self.arena_size * outwards, torch.full_like(up, 0.05)], dim=1), torch.cat(
      [speed * aim, up], dim=1
    )

  def product(self) -> Tensor:
    """Reward standing upright on all feet, and speed, or a ball in the mouth and in the middle."""
    pressed, weight = self.forces()[:, -4:].sum(1), self.weight
    product = reward.tolerance(pressed, weight, inf, margin=weight, shape="linear", at_margin=0.9)
    for body, height in zip((self.torso, self.pelvis), self.heights, strict=True):
      product = product * reward.tolerance(self.sim.xpos[:, body, 2], height, inf, margin=height)
    for body in (self.skull, self.torso, self.pelvis):
      upright, margin = self.sim.xmat[:, body, suite.ZZ], 1 + UPRIGHT
      product = product * reward.tolerance(
        upright, UPRIGHT, inf, margin=margin, shape="linear", at_margin=0.0
      )
    if self.config.fetch:
      return product * self.fetching()
    return product * self.moving() if self.config.speed else product

  def moving(self) -> Tensor:
    """Return a factor for speed forwards [num_envs]."""
    aim, forwards = self.config.speed, self.velocity()[:, 0]
    margin = max(1.0, aim)
    fast = reward.tolerance(forwards, aim, 2 * aim, margin=margin, shape="linear", at_margin=0.0)
    return (1 + 4 * fast) / 5

  def fetching(self) -> Tensor:
    """Return a factor for a ball in the mouth or in the middle, and for its way there [num_envs]."""
    ball = self.sim.geom_xpos[:, self.ball]
    mouth = sum((self.sim.site_xpos[:, site] - ball).norm(dim=1) for site in self.bite) / 2
    reached = (1 + 6 * reward.tolerance(mouth, high=self.bite_radius, margin=2.0, shape="reciprocal")) / 7
    away = (ball - self.sim.geom_xpos[:, self.target]).norm(dim=1)
    there = (1 + reward.tolerance(away, high=self.size, margin=self.arena_size, shape="reciprocal")) / 2
    return torch.where(away < 2 * self.size, 1.0, reached) * there

  def velocity(self) -> Tensor:
    """Return the velocity of the centre of mass in the torso's frame [num_envs, 3] [m/s]."""
    frame = self.sim.xmat[:, self.torso].unflatten(1, (3, 3))
    return quat.to_body(frame, self.sensed("torso_linvel"))

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return joints, height, tilt, velocity, sensors of head and feet, and muscles; ball and target."""
    xmat, xpos, forces, end = self.sim.xmat, self.sim.xpos, self.forces(), 7 + self.hinges
    bodies = (self.skull, self.torso, self.pelvis)
    inertial = [forces[:, :3], self.sensed("velocimeter"), self.sensed("gyro")]
    blocks = {
      "joint_angles": self.sim.qpos[:, 7:end],
      "joint_velocites": self.sim.qvel[:, 6 : end - 1],
      "torso_pelvis_height": torch.stack([xpos[:, self.torso, 2], xpos[:, self.pelvis, 2]], dim=1),
      "z_projection": torch.stack([xmat[:, body, suite.ZX :] for body in bodies], dim=1),
      "torso_com_velocity": self.velocity(),
      "inertial_sensors": torch.cat(inertial, dim=1),
      "foot_forces": forces[:, 3:-4],
      "touch_sensors": forces[:, -4:],
      "actuator_state": self.sim.act,
    }
    return {"policy": blocks | (self.arena() if self.config.fetch else {})}

  def arena(self) -> dict[str, Tensor]:
    """Return the observation blocks of ball and target, in the head's frame."""
    frame = self.sim.site_xmat[:, self.head].unflatten(1, (3, 3))
    ball, target = (
      quat.to_body(frame, self.sim.geom_xpos[:, geom] - self.sim.site_xpos[:, self.head])
      for geom in (self.ball, self.target)
    )
    velocity = quat.to_body(frame, self.sim.qvel[:, -6:-3]) - self.sensed("velocimeter")
    return {"ball_state": torch.cat([ball, velocity], dim=1), "target_position": target}
