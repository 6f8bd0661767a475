"""Hopper: a planar leg with three motors hops forwards."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 30_000_000}
PPO = gym_v5.PPO | {
  "log_std_init": -1.0,
  "gamma": 0.997,  # with 0.99 it hops fast and falls after 600 steps
  "gae_lambda": 0.97,
  "reward_transform": "scale",  # better than symlog, see docs/ablations.md
}


@dataclass
class Config(gym_v5.Config):
  """Settings of Hopper."""

  substeps: int = option(4, "number of physics steps per control step", low=1)
  start_noise: float = option(
    0.005, "largest offset of positions and velocities at the start of an episode", low=0
  )
  height_low: float = option(0.7, "torso height below which the robot has fallen", "m")
  height_high: float = option(math.inf, "torso height above which the episode ends", "m")
  angle_limit: float = option(0.2, "torso angle at which the robot has fallen", "rad", low=0)
  state_limit: float = option(
    100.0, "absolute joint position or velocity at which the episode ends", "m, rad, m/s, rad/s", low=0
  )
  reward_forward: float = option(1.0, "weight of the velocity along x", "s/m")
  reward_healthy: float = option(1.0, "weight of the constant reward of a step that does not end the episode")
  reward_control: float = option(-1e-3, "weight of the penalty on the sum of squared controls")


class Task(gym_v5.Runner):
  """Hopper task of Gymnasium with 3 actions, motor torques, and 11 observations."""

  robot = gym_v5.ASSETS / "hopper.xml"
  outputs = ()
  config: Config

  def reward(self) -> dict[str, Tensor]:
    """Add a reward for being healthy."""
    return super().reward() | {"healthy": ~self.terminated()}

  def terminated(self) -> Tensor:
    """Fail if the torso is too low, too high or tilted, or if a position or velocity is out of range."""
    c, (_, height, angle, *_) = self.config, self.sim.qpos.unbind(1)
    upright = (height > c.height_low) & (height < c.height_high) & (angle.abs() < c.angle_limit)
    state = torch.cat([self.sim.qpos[:, 2:].T, self.sim.qvel.T])
    return ~(upright & (state.abs() < c.state_limit).all(0))

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return positions, and velocities clipped to +-10."""
    blocks = super().observe()["policy"]
    return {"policy": blocks | {"velocity": blocks["velocity"].clamp(-10.0, 10.0)}}
