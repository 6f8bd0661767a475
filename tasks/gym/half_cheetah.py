"""HalfCheetah: a planar robot with six motors runs as fast as possible."""

from dataclasses import dataclass

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 20_000_000}
PPO = gym_v5.PPO


@dataclass
class Config(gym_v5.Config):
  """Settings of HalfCheetah. Episodes never terminate early."""

  substeps: int = option(5, "number of physics steps per control step", low=1)
  reward_forward: float = option(1.0, "weight of the velocity along x", "s/m")
  reward_control: float = option(-0.1, "weight of the penalty on the sum of squared controls")


class Task(gym_v5.Runner):
  """HalfCheetah task of Gymnasium with 6 actions, motor torques, and 17 observations."""

  robot = gym_v5.ASSETS / "half_cheetah.xml"
  outputs = ()
  normal_velocity = True
