"""Humanoid: a robot of human shape with 21 motors gets up, then stands, walks or runs."""

from dataclasses import dataclass
from math import inf

from torch import Tensor

from tasks.base import option
from tasks.shared import quat, reward, suite

TRAIN = suite.TRAIN | {"max_steps": 100_000_000, "num_envs": 1024}
PPO = suite.PPO | {"hidden": [256, 256], "log_std_init": -1.0}


@dataclass
class Config(suite.DrawnConfig):
  """Settings of humanoid."""

  substeps: int = option(5, "number of physics steps per control step", low=1)
  speed: float = option(1.0, "speed that earns the full reward; 0: to stand still", "m/s", low=0)
  height: float = option(1.4, "height of the head that earns the full reward", "m", low=0)
  pure_state: bool = option(False, "whether the state is observed, and not quantities derived from it")


class Task(suite.DrawnTask):
  """Humanoid of the suite with 21 actions, motor torques, and 67 observations, or 55 of the pure state."""

  robot = suite.FOLDER / "humanoid.xml"
  outputs = ("sensordata", "xmat", "xpos")
  trunk, spine = "torso", suite.ZZ  # the upright body, and the entry of its rotation that is 1 if it is
  limbs: tuple[str, ...] = ("left_hand", "left_foot", "right_hand", "right_foot")
  config: Config

  def setup(self) -> None:
    """Look up torso, head, hands and feet."""
    super().setup()
    self.torso, self.head = self.model.body_id(self.trunk), self.model.body_id("head")
    self.ends = self.body_of(*self.limbs)

  def product(self) -> Tensor:
    """Reward standing upright with small controls, and speed or its absence."""
    c, velocity = self.config, self.sensed(f"{self.trunk}_subtreelinvel")[:, :2]
    head, upright = self.sim.xpos[:, self.head, 2], self.sim.xmat[:, self.torso, self.spine]
    standing = reward.tolerance(head, c.height, inf, margin=c.height / 4)
    standing = standing * reward.tolerance(upright, 0.9, inf, margin=1.9, shape="linear", at_margin=0.0)
    standing = standing * suite.small(self.sim.ctrl)
    if not c.speed:
      return standing * reward.tolerance(velocity, margin=2.0).mean(1)
    fast = reward.tolerance(velocity.norm(dim=1), c.speed, inf, margin=c.speed, shape="linear", at_margin=0.0)
    return standing * (1 + 5 * fast) / 6

  def extremities(self) -> Tensor:
    """Return the positions of hands and feet in the torso's frame [num_envs, 4, 3] [m]."""
    frame = self.sim.xmat[:, self.torso].unflatten(1, (1, 3, 3))
    return quat.to_body(frame, self.sim.xpos[:, self.ends] - self.sim.xpos[:, self.torso].unsqueeze(1))

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return joints, head, hands, feet, tilt and velocities, or the state."""
    if self.config.pure_state:
      return {"policy": {"position": self.sim.qpos, "velocity": self.sim.qvel}}
    blocks = {
      "joint_angles": self.sim.qpos[:, 7:],
      "head_height": self.sim.xpos[:, self.head, 2],
      "extremities": self.extremities(),
      "torso_vertical": self.sim.xmat[:, self.torso, suite.ZX :],
      "com_velocity": self.sensed(f"{self.trunk}_subtreelinvel"),
      "velocity": self.sim.qvel,
    }
    return {"policy": blocks}
