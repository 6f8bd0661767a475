"""Ant: a four-legged robot that runs towards a distant target.

`tasks/shared/runner.py` holds everything except the robot and its reward weights.
"""

from dataclasses import dataclass

from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import runner

LEGS = ("front_left", "back_left", "back_right", "front_right")
TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 20_000_000}  # 6,000 takes 3 to 4 million
PPO: dict[str, object] = {
  "epochs": 2,  # as many gradient steps as 4 epochs of 2 minibatches, with half of their products
  "minibatches": 4,
  "reference_minibatch": 8192,
  "kl_target": 0.03,  # with half of it, noise vanishes too late, see docs/ablations.md
  "log_std_init": -1.0,  # with 0, large actions shake the legs: 6,000 takes half as many steps again
  "reward_scale": 0.01,  # rewards reach 10: scaled, symlog is nearly linear
}


@dataclass
class Config(runner.Config):
  """Settings of Ant."""

  fall_height: float = option(0.31, "torso height below which the robot has fallen", "m")
  reward_alive: float = option(0.5, "weight of the constant reward per step")
  reward_action: float = option(-0.005, "weight of the penalty on the sum of squared actions")
  reward_energy: float = option(-0.01, "weight of the penalty on the sum of |action x joint speed|", "s/rad")
  reward_joint_limit: float = option(-0.1, "weight of the penalty on the number of joints at upper limits")
  reward_fallen: float = option(-2.0, "reward of a step that ends in a fall, replacing all other terms")


class Task(runner.Task):
  """Ant task with 8 actions, motor torques, and 60 observations."""

  robot = base.ASSETS / "ant" / "robot.xml"
  feet = tuple(f"{leg}_foot" for leg in LEGS)
  turning = ("hip",)
  speed_scale, force_scale = 0.2, 0.1
  config: Config

  def at_limits(self, fraction: Tensor) -> Tensor:
    """Return the number of joints at their upper limits [N], from `joint_fraction()` [N, n]."""
    return (fraction > 0.99).sum(1)
