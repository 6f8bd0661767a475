"""Quadruped: a robot dog follows velocity commands on flat ground.

Commands, rewards and randomisation follow published tasks, see `tasks/shared/locomotion.py`.
"""

from dataclasses import dataclass

from tasks import base
from tasks.shared import locomotion

LEGS = ("FR", "FL", "RR", "RL")
TRAIN: dict[str, object] = {"num_envs": 2048, "max_steps": 50_000_000}
PPO, SAC = locomotion.PPO, locomotion.SAC


@dataclass
class Config(locomotion.Config):
  """Settings of the quadruped."""


class Task(locomotion.Task):
  """Quadruped task with 12 actions, joint targets; 45 observations of the policy, 59 of the critic."""

  robot = base.ASSETS / "quadruped" / "robot.xml"
  joints = tuple(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh", "calf"))
  feet = tuple(f"{leg}_foot" for leg in LEGS)
  resting = (0.02,) * 4
  trunk = "trunk"
  guarded = tuple(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh"))
  mirrored = [*range(3, 6), *range(3), *range(9, 12), *range(6, 9)], [-1, 1, 1] * 4  # hips change sign
  config: Config
