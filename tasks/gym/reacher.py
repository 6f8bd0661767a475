"""Reacher: a planar arm of two motors brings its fingertip to a target."""

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
  """Settings of Reacher; an episode never ends early."""

  episode_steps: int = option(50, "control steps until the time limit", low=1)
  substeps: int = option(2, "physics steps in a control step", low=1)
  start_angle: float = option(0.1, "largest angle of a joint at the start of an episode", "rad", low=0)
  start_velocity: float = option(0.005, "largest joint speed at the start of an episode", "rad/s", low=0)
  target_distance: float = option(0.2, "radius of the disc in which targets lie", "m", low=0)
  reward_distance: float = option(-1.0, "weight of the fingertip's distance from the target", "1/m")
  reward_control: float = option(-1.0, "weight of the summed squared controls")


class Task(base.Task):
  """Two motors are the action; the observation has 10 numbers."""

  robot = gym_v5.ASSETS / "reacher.xml"
  outputs = ("xpos",)
  config: Config

  def setup(self) -> None:
    """Find fingertip and target."""
    self.fingertip, self.target = (self.model.body_id(name) for name in ("fingertip", "target"))

  def initial_state(self) -> dict[str, Tensor]:
    """Start with a nearly straight arm and a target anywhere in the disc."""
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
    """Return the way from the target to the fingertip in the last evaluation [num_envs, 3] [m]."""
    return self.sim.xpos[:, self.fingertip] - self.sim.xpos[:, self.target]

  def reward(self) -> dict[str, Tensor]:
    """Charge for distance and squared controls."""
    return {"distance": self.to_target().norm(dim=1), "control": self.sim.ctrl.square().sum(1)}

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show the arm's angles and speeds, the target, and the way between it and the fingertip."""
    angles, target = self.sim.qpos.split(2, dim=1)
    blocks = {
      "cosine": angles.cos(),
      "sine": angles.sin(),
      "target": target,
      "speed": self.sim.qvel[:, :2],
      "to_target": self.to_target()[:, :2],
    }
    return {"policy": blocks}
