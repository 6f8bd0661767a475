"""Walker: a planar robot with two legs gets up, then stands, walks or runs."""

from dataclasses import dataclass
from math import inf

from torch import Tensor

from tasks.base import option
from tasks.shared import reward, suite

TRAIN = suite.TRAIN | {"max_steps": 30_000_000}
PPO = suite.PPO


@dataclass
class Config(suite.Config):
  """Settings of walker."""

  substeps: int = option(10, "number of physics steps per control step", low=1)
  speed: float = option(1.0, "speed that earns the full reward; 0: to stand", "m/s", low=0)
  height: float = option(1.2, "height of the torso that earns the full reward", "m", low=0)


class Task(suite.Task):
  """Walker of the suite with 6 actions, motor torques, and 24 observations."""

  robot = suite.FOLDER / "walker.xml"
  outputs = ("sensordata", "xmat", "xpos")
  config: Config

  def setup(self) -> None:
    """Look up the torso."""
    super().setup()
    self.torso = self.model.body_id("torso")

  def product(self) -> Tensor:
    """Reward standing upright, and speed."""
    c, upright = self.config, (1 + self.sim.xmat[:, self.torso, suite.ZZ]) / 2
    high = reward.tolerance(self.sim.xpos[:, self.torso, 2], c.height, inf, margin=c.height / 2)
    standing = (3 * high + upright) / 4
    if not c.speed:
      return standing
    speed = self.sensed("torso_subtreelinvel")[:, 0]
    fast = reward.tolerance(speed, c.speed, inf, margin=c.speed / 2, shape="linear", at_margin=0.5)
    return standing * (1 + 5 * fast) / 6

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the directions of all bodies, the height and the velocities."""
    blocks = {
      "orientations": self.sim.xmat[:, 1:, suite.XX : suite.XZ + 1 : 2],
      "height": self.sim.xpos[:, self.torso, 2],
      "velocity": self.sim.qvel,
    }
    return {"policy": blocks}
