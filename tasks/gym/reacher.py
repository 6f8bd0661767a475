"""Reacher: a planar arm with two motors moves its fingertip to a target."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 5_000_000}
PPO = gym_v5.PPO | {"log_std_init": -1.0, "reward_scale": 1.0}


@dataclass
class Config(base.Config):
  """Settings of Reacher. Episodes never terminate early."""

  episode_steps: int = option(50, "maximum number of control steps per episode", low=1)
  substeps: int = option(2, "number of physics steps per control step", low=1)
  start_angle: float = option(0.1, "largest angle of a joint at the start of an episode", "rad", low=0)
  start_velocity: float = option(0.005, "largest joint speed at the start of an episode", "rad/s", low=0)
  target_distance: float = option(0.2, "radius of the disc of targets", "m", low=0)
  reward_distance: float = option(
    -1.0, "weight of the penalty on the distance of the fingertip from the target", "1/m"
  )
  reward_control: float = option(-1.0, "weight of the penalty on the sum of squared controls")


class Task(base.Task):
  """Reacher task of Gymnasium with 2 actions, motor torques, and 10 observations."""

  robot = gym_v5.ASSETS / "reacher.xml"
  outputs = ("xpos",)
  config: Config

  def setup(self) -> None:
    """Look up fingertip and target."""
    self.fingertip, self.target = (self.model.body_id(name) for name in ("fingertip", "target"))

  def initial_state(self) -> dict[str, Tensor]:
    """Start with a nearly straight arm and a random target in the disc."""
    c, uniform = self.config, self.random.uniform
    angles = uniform("start angle", (2,), -c.start_angle, c.start_angle)
    radius, bearing = uniform("target", (2,)).unbind(1)
    radius, bearing = c.target_distance * radius.sqrt(), 2 * math.pi * bearing
    target = torch.stack([radius * bearing.cos(), radius * bearing.sin()], dim=1)
    speeds = uniform("start velocity", (2,), -c.start_velocity, c.start_velocity)
    return {
      "qpos": torch.cat([angles, target], dim=1),
      "qvel": torch.cat([speeds, torch.zeros_like(speeds)], dim=1),
    }

  def to_target(self) -> Tensor:
    """Return the offset of the fingertip from the target in the last evaluation [num_envs, 3] [m]."""
    return self.sim.xpos[:, self.fingertip] - self.sim.xpos[:, self.target]

  def reward(self) -> dict[str, Tensor]:
    """Penalise distance and squared controls."""
    return {"distance": self.to_target().norm(dim=1), "control": self.sim.ctrl.square().sum(1)}

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return arm angles and speeds, the target, and the offset of the fingertip from it."""
    angles, target = self.sim.qpos.split(2, dim=1)
    blocks = {
      "cosine": angles.cos(),
      "sine": angles.sin(),
      "target": target,
      "speed": self.sim.qvel[:, :2],
      "to_target": self.to_target()[:, :2],
    }
    return {"policy": blocks}
