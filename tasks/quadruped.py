"""Quadruped: a robot dog follows velocity commands on flat ground.

Commands, rewards and randomisation follow published tasks, see `tasks/shared/locomotion.py`.
"""

from dataclasses import dataclass

from tasks import base
from tasks.shared import gait, locomotion

LEGS = ("FR", "FL", "RR", "RL")
TRAIN, PPO, SAC = gait.TRAIN, gait.PPO, locomotion.SAC


@dataclass
class Config(gait.Config):
  """Settings of the quadruped."""


class Task(gait.Task):
  """Quadruped task with 12 actions, joint targets; 47 observations of the policy, 61 of the critic."""

  robot = base.ASSETS / "quadruped" / "robot.xml"
  joints = tuple(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh", "calf"))
  feet = tuple(f"{leg}_foot" for leg in LEGS)
  phases = (0.0, 0.5, 0.5, 0.0)  # a trot
  resting = (0.02,) * 4
  trunk = "trunk"
  guarded = tuple(f"{leg}_{part}" for leg in LEGS for part in ("hip", "thigh"))
  mirrored = [*range(3, 6), *range(3), *range(9, 12), *range(6, 9)], [-1, 1, 1] * 4  # hips change sign
  config: Config
