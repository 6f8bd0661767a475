"""Swimmer: a chain of three links swims in a viscous fluid."""

from dataclasses import dataclass

from tasks.base import option
from tasks.gym import base


@dataclass
class Config(base.Config):
  """Settings of Swimmer; an episode never ends early."""

  substeps: int = option(4, "physics steps in a control step", low=1)
  reward_forward: float = option(1.0, "weight of the speed along x", "s/m")
  reward_control: float = option(-1e-4, "weight of the summed squared controls")


class Task(base.Runner):
  """Two motors are the action; the observation has 8 numbers."""

  robot = base.ASSETS / "swimmer.xml"
  outputs = ()
  unseen = 2
