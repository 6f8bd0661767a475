"""Cheetah: a planar animal with six motors runs."""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from torch import Tensor

from tasks.base import option
from tasks.shared import reward, suite

TRAIN = suite.TRAIN | {"max_steps": 20_000_000}
PPO = suite.PPO

SETTLING = 200  # time steps without control before an episode begins


@dataclass
class Config(suite.DrawnConfig):
  """Settings of cheetah."""

  substeps: int = option(1, "number of physics steps per control step", low=1)
  speed: float = option(10.0, "speed that earns the full reward", "m/s", low=0)


class Task(suite.DrawnTask):
  """Cheetah of the suite with 6 actions, motor torques, and 17 observations."""

  robot = suite.FOLDER / "cheetah.xml"
  outputs = ("sensordata",)
  config: Config

  @classmethod
  def draw(cls, model: Any, random: np.random.Generator, count: int) -> suite.Arrays:
    """Drop robots with joints anywhere between their limits to the ground."""
    low, high = suite.start_range(model)
    low[:3] = high[:3] = 0.0
    return suite.evaluate(
      model, {"qpos": random.uniform(low, high, (count, model.nq))}, ["qpos", "qvel"], SETTLING
    )

  def product(self) -> Tensor:
    """Reward speed."""
    speed, fast = self.sensed("torso_subtreelinvel")[:, 0], self.config.speed
    return reward.tolerance(speed, fast, inf, margin=fast, shape="linear", at_margin=0.0)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the state without the position along x."""
    return {"policy": {"position": self.sim.qpos[:, 1:], "velocity": self.sim.qvel}}
