"""Quadruped: a robot dog follows velocity commands on flat ground.

Commands, rewards and randomisation follow published tasks, see `tasks/shared/locomotion.py`.
"""

from dataclasses import dataclass

from tasks import base
from tasks.shared import locomotion

LEGS = ("FR", "FL", "RR", "RL")
TRAIN: dict[str, object] = {"num_envs": 2048, "max_steps": 50_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64, 32],
  "horizon": 24,
  "epochs": 3,
  "log_std_init": -1.2,
  # Without it the robot learns to stand still first, and takes its first steps late. Once it walks, noise
  # only costs.
  "entropy_coef": 0.03,
  "entropy_coef_final": 0.0,
  "entropy_steps": 4_000_000,
}
SAC: dict[str, object] = {
  "gamma": 0.97,  # a command is followed within a second
  "target_entropy": -2.0,  # noise is an error: 0.20 m/s after 0.1 million steps, and 0.34 without both
}


@dataclass
class Config(locomotion.Config):
  """Settings of the quadruped."""


class Task(locomotion.Task):
  """Quadruped task with 12 actions, joint targets; 48 observations of the policy, 59 of the critic."""

  robot = base.ASSETS / "quadruped" / "robot.xml"
  joints = tuple(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh", "calf"))
  feet = tuple(f"{leg}_foot" for leg in LEGS)
  trunk = "trunk"
  guarded = tuple(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh"))
  mirrored = [*range(3, 6), *range(3), *range(9, 12), *range(6, 9)], [-1, 1, 1] * 4  # hips change sign
  config: Config
