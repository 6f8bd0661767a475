"""Humanoid CMU: a robot of human shape with 56 motors gets up, then stands, walks or runs."""

from dataclasses import dataclass

from tasks.base import option
from tasks.dm import humanoid
from tasks.shared import suite

TRAIN = humanoid.TRAIN
PPO = humanoid.PPO


@dataclass
class Config(humanoid.Config):
  """Settings of humanoid CMU."""

  substeps: int = option(10, "number of physics steps per control step", low=1)


class Task(humanoid.Task):
  """Humanoid CMU of the suite with 56 actions, motor torques, and 137 observations."""

  robot = suite.FOLDER / "humanoid_CMU.xml"
  trunk, spine = "thorax", suite.ZY
  limbs = ("lhand", "lfoot", "rhand", "rfoot")
  config: Config
