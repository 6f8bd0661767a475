"""Hopper: a planar robot with one leg gets up, then stands or hops forwards."""

from dataclasses import dataclass
from math import inf

from torch import Tensor

from tasks.base import option
from tasks.shared import reward, suite

TRAIN = suite.TRAIN | {"max_steps": 30_000_000}
PPO = suite.PPO


@dataclass
class Config(suite.Config):
  """Settings of hopper."""

  substeps: int = option(4, "number of physics steps per control step", low=1)
  hop: bool = option(True, "whether it is to hop, and not to stand")
  height: float = option(0.6, "height of the torso above the foot that earns the full reward", "m", low=0)
  speed: float = option(2.0, "speed that earns the full reward of hopping", "m/s", low=0)


class Task(suite.Task):
  """Hopper of the suite with 4 actions, motor torques, and 15 observations."""

  robot = suite.FOLDER / "hopper.xml"
  outputs = ("sensordata", "xipos")
  force_sensors = ("touch_toe", "touch_heel")
  config: Config

  def setup(self) -> None:
    """Look up torso and foot."""
    super().setup()
    self.torso, self.foot = (self.model.body_id(name) for name in ("torso", "foot"))

  def product(self) -> Tensor:
    """Reward height, and speed or small controls."""
    c, height = self.config, self.sim.xipos[:, self.torso, 2] - self.sim.xipos[:, self.foot, 2]
    standing = reward.tolerance(height, c.height, 2.0)
    if not c.hop:
      return standing * suite.small(self.sim.ctrl)
    speed = self.sensed("torso_subtreelinvel")[:, 0]
    return standing * reward.tolerance(speed, c.speed, inf, margin=c.speed / 2, shape="linear", at_margin=0.5)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the state without the position along x, and touch."""
    blocks = {
      "position": self.sim.qpos[:, 1:],
      "velocity": self.sim.qvel,
      "touch": self.forces().log1p(),
    }
    return {"policy": blocks}
