"""Ball in cup: a cup that moves in a plane catches the ball that hangs from it on a string."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from tasks.base import option
from tasks.shared import suite

TRAIN = suite.TRAIN | {"max_steps": 10_000_000}
PPO = suite.PPO


@dataclass
class Config(suite.DrawnConfig):
  """Settings of ball in cup."""

  substeps: int = option(10, "number of physics steps per control step", low=1)


class Task(suite.DrawnTask):
  """Ball in cup of the suite with 2 actions, the forces on the cup, and 8 observations."""

  robot = suite.FOLDER / "ball_in_cup.xml"
  outputs = ("site_xpos", "xpos")
  config: Config

  @classmethod
  def draw(cls, model: Any, random: np.random.Generator, count: int) -> suite.Arrays:
    """Draw places of the ball that do not touch the cup."""
    qpos = np.tile(model.qpos0, (count, 1))
    qpos[:, 2:] = random.uniform((-0.2, 0.2), (0.2, 0.5), (count, 2))
    return suite.apart(model, {"qpos": qpos})

  def setup(self) -> None:
    """Look up the ball and the target, and the room that it leaves the ball."""
    super().setup()
    self.ball, self.target = self.model.body_id("ball"), self.model.site_id("target")
    radius = self.model.geom_size[self.model.geom_id("ball"), 0]
    self.room = self.constant(self.model.site_size[self.target] - radius)  # along x, y and z [3] [m]

  def product(self) -> Tensor:
    """Reward a ball within the target."""
    offset = (self.sim.site_xpos[:, self.target] - self.sim.xpos[:, self.ball]).abs()
    return (offset < self.room)[:, ::2].all(1).to(offset.dtype)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the state."""
    return {"policy": {"position": self.sim.qpos, "velocity": self.sim.qvel}}
