"""Swimmer: a chain of three links swims in a viscous fluid."""

from dataclasses import dataclass

from tasks.base import option
from tasks.shared import gym_v5

TRAIN = gym_v5.TRAIN | {"max_steps": 10_000_000}
PPO = gym_v5.PPO | {"gamma": 0.9999}  # a stroke pays late: with 0.99 it learns to wriggle in place


@dataclass
class Config(gym_v5.Config):
  """Settings of Swimmer; an episode never ends early."""

  substeps: int = option(4, "physics steps in a control step", low=1)
  reward_forward: float = option(1.0, "weight of the speed along x", "s/m")
  reward_control: float = option(-1e-4, "weight of the summed squared controls")


class Task(gym_v5.Runner):
  """Two motors are the action; the observation has 8 numbers."""

  robot = gym_v5.ASSETS / "swimmer.xml"
  outputs = ()
  unseen = 2
