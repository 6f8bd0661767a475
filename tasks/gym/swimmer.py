"""Swimmer: a chain of three links with two motors swims in a viscous fluid."""

from dataclasses import dataclass

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 10_000_000}
PPO = gym_v5.PPO | {"gamma": 0.9999}  # strokes pay off late; with 0.99 it learns to wriggle on the spot


@dataclass
class Config(gym_v5.Config):
  """Settings of Swimmer. Episodes never terminate early."""

  substeps: int = option(4, "number of physics steps per control step", low=1)
  reward_forward: float = option(1.0, "weight of the velocity along x", "s/m")
  reward_control: float = option(-1e-4, "weight of the penalty on the sum of squared controls")


class Task(gym_v5.Runner):
  """Swimmer task of Gymnasium with 2 actions, motor torques, and 8 observations."""

  robot = gym_v5.ASSETS / "swimmer.xml"
  outputs = ()
  unseen = 2
