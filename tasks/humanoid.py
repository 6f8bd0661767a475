"""Humanoid: a robot of human shape runs towards a target far ahead.

All but the robot and its weights is in `tasks/shared/runner.py`. In IsaacGymEnvs the policy sees the force in
each joint; here, the torque of contacts and limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import runner

TRAIN: dict[str, object] = {"num_envs": 2048, "max_steps": 60_000_000}
PPO: dict[str, object] = {
  "horizon": 32,
  "epochs": 3,
  "minibatches": 4,
  "reference_minibatch": 16384,
  "lr": 5e-4,
  "critic_coef": 4.0,
  "reward_scale": 0.01,  # rewards reach 10: scaled, symlog is nearly linear
}


@dataclass
class Config(runner.Config):
  """Settings of Humanoid."""

  substeps: int = option(3, "physics steps in a control step", low=1)
  fall_height: float = option(0.8, "height of the torso below which the robot has fallen", "m")
  reward_alive: float = option(2.0, "weight of one per step")
  reward_action: float = option(-0.01, "weight of the summed squared actions")
  reward_energy: float = option(
    -0.005,
    "weight of the summed |action x joint speed|, each times its motor's share of the strongest",
    "s/rad",
  )
  reward_joint_limit: float = option(
    -0.25, "weight of the joints at their limits: 1 each where the strongest motor is, less where weaker"
  )
  reward_fallen: float = option(-1.0, "reward of a step that ends in a fall, in place of all others")


class Task(runner.Task):
  """21 motor torques are the action; the observation has 108 numbers."""

  robot = base.ASSETS / "humanoid" / "robot.xml"
  outputs = ("cfrc_ext", "qfrc_constraint")
  feet = ("right_foot", "left_foot")
  turning = ("abdomen_z", "abdomen_x")
  spin_scale, speed_scale, force_scale = 0.25, 0.1, 0.01
  config: Config

  def at_limits(self, fraction: Tensor) -> Tensor:
    """Sum, over joints with their motors' shares: 0 up to 98 % of the way to a limit, 1 at it, at most 2."""
    return (self.share * ((fraction.abs() - 0.98) / 0.02).clamp(0.0, 2.0)).sum(1)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show, beside what all runners see, the torques of contacts and limits in the joints."""
    torques = (self.force_scale * self.sim.qfrc_constraint[:, self.speeds]).clamp(-10.0, 10.0)
    return {"policy": {**super().observe()["policy"], "torques": torques}}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange left and right."""
    common = super().symmetry()
    return {**common, "torques": common["action"]}
