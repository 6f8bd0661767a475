"""Walker2d: two planar legs of three motors each walk forwards."""

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

  height_low: float = option(0.8, "height of the torso below which it has fallen", "m")
  height_high: float = option(2.0, "height of the torso above which an episode ends", "m")
  angle_limit: float = option(1.0, "angle of the torso from which on it has fallen", "rad", low=0)
  state_limit: float = option(
    math.inf, "size of any joint position or velocity that ends an episode", "m, rad, m/s, rad/s", low=0
  )


class Task(hopper.Task):
  """Six motors are the action; the observation has 17 numbers."""

  robot = gym_v5.ASSETS / "walker2d_v5.xml"
