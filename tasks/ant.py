"""Ant: a light four-legged robot runs towards a target far ahead.

All but the robot and its weights is in `tasks/shared/runner.py`.
"""

from dataclasses import dataclass

from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import runner

LEGS = ("front_left", "back_left", "back_right", "front_right")
TRAIN: dict[str, object] = {"max_steps": 30_000_000}  # a return of 6,000 takes half of them
PPO: dict[str, object] = {"reward_scale": 0.01}  # rewards reach 10: scaled, symlog is nearly linear


@dataclass
class Config(runner.Config):
  """Settings of Ant."""

  fall_height: float = option(0.31, "height of the torso below which the robot has fallen", "m")
  reward_alive: float = option(0.5, "weight of one per step")
  reward_action: float = option(-0.005, "weight of the summed squared actions")
  reward_energy: float = option(-0.01, "weight of the summed |action x joint speed|", "s/rad")
  reward_joint_limit: float = option(-0.1, "weight of the number of joints at their upper limits")
  reward_fallen: float = option(-2.0, "reward of a step that ends in a fall, in place of all others")


class Task(runner.Task):
  """Eight motor torques are the action; the observation has 60 numbers."""

  robot = base.ASSETS / "ant" / "robot.xml"
  feet = tuple(f"{leg}_foot" for leg in LEGS)
  turning = ("hip",)
  speed_scale, force_scale = 0.2, 0.1
  config: Config

  def at_limits(self, fraction: Tensor) -> Tensor:
    """Count the joints at their upper limits."""
    return (fraction > 0.99).sum(1)
