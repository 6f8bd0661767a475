"""Humanoid: a robot of human shape that runs towards a distant target.

`tasks/shared/runner.py` holds everything except the robot and its reward weights. In IsaacGymEnvs the policy
observes the force in each joint; here it observes the torque of contacts and limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import runner

TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 40_000_000}
PPO: dict[str, object] = {
  "horizon": 32,
  "epochs": 3,
  "minibatches": 4,
  "reference_minibatch": 8192,
  "lr": 5e-4,
  "kl_target": 0.016,
  "critic_coef": 4.0,
  "reward_scale": 0.01,  # rewards reach 10: scaled, symlog is nearly linear
}


@dataclass
class Config(runner.Config):
  """Settings of Humanoid."""

  substeps: int = option(3, "number of physics steps per control step", low=1)
  fall_height: float = option(0.8, "torso height below which the robot has fallen", "m")
  reward_alive: float = option(2.0, "weight of the constant reward per step")
  reward_action: float = option(-0.01, "weight of the penalty on the sum of squared actions")
  reward_energy: float = option(
    -0.005,
    "weight of the penalty on the sum of |action x joint speed| x relative motor strength",
    "s/rad",
  )
  reward_joint_limit: float = option(
    -0.25, "weight of the penalty on joints at their limits, scaled by relative motor strength"
  )
  reward_fallen: float = option(-1.0, "reward of a step that ends in a fall, replacing all other terms")


class Task(runner.Task):
  """Humanoid task with 21 actions, motor torques, and 108 observations."""

  robot = base.ASSETS / "humanoid" / "robot.xml"
  outputs = ("cfrc_ext", "qfrc_constraint")
  feet = ("right_foot", "left_foot")
  turning = ("abdomen_z", "abdomen_x")
  spin_scale, speed_scale, force_scale = 0.25, 0.1, 0.01
  config: Config

  def at_limits(self, fraction: Tensor) -> Tensor:
    """Return the sum [N] over joints, weighted by motor strength, from `joint_fraction()` [N, n].

    A joint counts 0 up to 98 % of its range, 1 at the limit and at most 2 beyond.
    """
    return (self.share * ((fraction.abs() - 0.98) / 0.02).clamp(0.0, 2.0)).sum(1)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Add the joint torques of contacts and limits to the observation of a running robot."""
    torques = (self.force_scale * self.sim.qfrc_constraint[:, self.speeds]).clamp(-10.0, 10.0)
    return {"policy": {**super().observe()["policy"], "torques": torques}}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange left and right."""
    common = super().symmetry()
    return {**common, "torques": common["action"]}
