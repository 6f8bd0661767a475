"""HalfCheetah: a planar animal of six motors runs as fast as it can."""

from dataclasses import dataclass

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 20_000_000}
PPO = gym_v5.PPO


@dataclass
class Config(gym_v5.Config):
  """Settings of HalfCheetah; an episode never ends early."""

  substeps: int = option(5, "physics steps in a control step", low=1)
  reward_forward: float = option(1.0, "weight of the speed along x", "s/m")
  reward_control: float = option(-0.1, "weight of the summed squared controls")


class Task(gym_v5.Runner):
  """Six motors are the action; the observation has 17 numbers."""

  robot = gym_v5.ASSETS / "half_cheetah.xml"
  outputs = ()
  normal_velocity = True
