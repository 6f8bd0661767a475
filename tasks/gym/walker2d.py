"""Walker2d: two planar legs with three motors each walk forwards."""

import math
from dataclasses import dataclass

from tasks.base import option
from tasks.gym import hopper
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 30_000_000}
PPO = gym_v5.PPO | {"log_std_init": -1.0}


@dataclass
class Config(hopper.Config):
  """Settings of Walker2d: Hopper's with other limits."""

  height_low: float = option(0.8, "torso height below which the robot has fallen", "m")
  height_high: float = option(2.0, "torso height above which the episode ends", "m")
  angle_limit: float = option(1.0, "torso angle at which the robot has fallen", "rad", low=0)
  state_limit: float = option(
    math.inf, "absolute joint position or velocity at which the episode ends", "m, rad, m/s, rad/s", low=0
  )


class Task(hopper.Task):
  """Walker2d task of Gymnasium with 6 actions, motor torques, and 17 observations."""

  robot = gym_v5.ASSETS / "walker2d_v5.xml"
