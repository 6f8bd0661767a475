"""Pendulum: a pole with a motor too weak to lift it swings up and balances."""

import math
from dataclasses import dataclass

from torch import Tensor

from tasks.base import option
from tasks.shared import suite

TRAIN = suite.TRAIN | {"max_steps": 10_000_000}
PPO = suite.PPO


@dataclass
class Config(suite.Config):
  """Settings of pendulum."""

  substeps: int = option(1, "number of physics steps per control step", low=1)
  angle: float = option(8.0, "angle from the vertical within which the pole earns a reward", "deg", low=0)


class Task(suite.Task):
  """Pendulum of the suite with 1 action, the torque, and 3 observations."""

  robot = suite.FOLDER / "pendulum.xml"
  outputs = ("xmat",)
  config: Config

  def product(self) -> Tensor:
    """Reward an upright pole."""
    upright = self.sim.xmat[:, 1, suite.ZZ]
    return (upright >= math.cos(math.radians(self.config.angle))).to(upright.dtype)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the direction of the pole, and its speed."""
    return {"policy": {"orientation": suite.lean(self.sim.xmat[:, 1]), "velocity": self.sim.qvel}}
