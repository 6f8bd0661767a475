"""Quadruped: a robot dog walks on flat ground as it is told: forward, sideways, turning.

Commands, rewards and randomisation follow published tasks of its kind, see `tasks/shared/locomotion.py`.
"""

from dataclasses import dataclass

from tasks import base
from tasks.shared import locomotion

LEGS = ("FR", "FL", "RR", "RL")
TRAIN: dict[str, object] = {"num_envs": 2048, "max_steps": 50_000_000}
PPO: dict[str, object] = {"hidden": [128, 64, 32], "horizon": 24, "epochs": 3, "log_std_init": -1.2}


@dataclass
class Config(locomotion.Config):
  """Settings of the quadruped."""


class Task(locomotion.Task):
  """Twelve joints; 48 numbers for the policy, 59 for the critic."""

  robot = base.ASSETS / "quadruped" / "robot.xml"
  joints = tuple(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh", "calf"))
  feet = tuple(f"{leg}_foot" for leg in LEGS)
  trunk = "trunk"
  guarded = tuple(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh"))
  mirrored = [*range(3, 6), *range(3), *range(9, 12), *range(6, 9)], [-1, 1, 1] * 4  # hips turn the other way
  config: Config
