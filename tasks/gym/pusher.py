"""Pusher: an arm with seven motors pushes a cylinder to a goal."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import gym_v5

# Candidate positions of the cylinder; the first one far enough from the goal is used. In one of five million
# episodes there is none.
TRIALS = 16

TRAIN = gym_v5.TRAIN | {"max_steps": 10_000_000}
PPO = gym_v5.PPO | {"log_std_init": -1.0, "reward_scale": 1.0}


@dataclass
class Config(base.Config):
  """Settings of Pusher. Episodes never terminate early."""

  episode_steps: int = option(100, "maximum number of control steps per episode", low=1)
  substeps: int = option(5, "number of physics steps per control step", low=1)
  start_velocity: float = option(0.005, "largest joint speed at the start of an episode", "rad/s", low=0)
  goal_distance: float = option(
    0.17, "smallest start distance of the cylinder from the goal", "m", low=0, high=0.3
  )
  reward_near: float = option(
    -0.5, "weight of the penalty on the distance between cylinder and fingertips", "1/m"
  )
  reward_distance: float = option(
    -1.0, "weight of the penalty on the distance of the cylinder from the goal", "1/m"
  )
  reward_control: float = option(-0.1, "weight of the penalty on the sum of squared controls", "1/(N m)^2")


class Task(base.Task):
  """Pusher task of Gymnasium with 7 actions, motor torques, and 23 observations."""

  robot = gym_v5.ASSETS / "pusher_v5.xml"
  outputs = ("xpos",)
  config: Config

  def setup(self) -> None:
    """Look up fingertips, cylinder and goal; store the start rectangle of the cylinder."""
    names = ("tips_arm", "object", "goal")
    self.tips, self.cylinder, self.goal = (self.model.body_id(name) for name in names)
    self.home = self.constant(self.model.qpos0)  # [nq]
    self.corner = self.constant([-0.3, -0.2])  # corner of the start rectangle, relative to the goal [2] [m]
    self.extent = self.constant([0.3, 0.4])  # size of the start rectangle [2] [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start with the arm pose of the file and a random cylinder position, away from the goal."""
    positions = self.corner + self.extent * self.random.uniform("cylinder", (TRIALS, 2))
    far = positions.norm(dim=2) > self.config.goal_distance
    first = far.to(torch.int32).argmax(1)  # argmax returns the first of equal maxima
    qpos, qvel = torch.empty_like(self.sim.qpos).copy_(self.home), torch.zeros_like(self.sim.qvel)
    qpos[:, 7:9] = positions.gather(1, first.view(-1, 1, 1).expand(-1, 1, 2)).squeeze(1)
    speed = self.config.start_velocity
    qvel[:, :7] = self.random.uniform("start velocity", (7,), -speed, speed)
    return {"qpos": qpos, "qvel": qvel}

  def reward(self) -> dict[str, Tensor]:
    """Penalise both distances and squared controls."""
    cylinder = self.sim.xpos[:, self.cylinder]
    return {
      "near": (cylinder - self.sim.xpos[:, self.tips]).norm(dim=1),
      "distance": (cylinder - self.sim.xpos[:, self.goal]).norm(dim=1),
      "control": self.sim.ctrl.square().sum(1),
    }

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return arm angles and speeds, and the positions of fingertips, cylinder and goal."""
    blocks = {
      "angle": self.sim.qpos[:, :7],
      "speed": self.sim.qvel[:, :7],
      "tips": self.sim.xpos[:, self.tips],
      "cylinder": self.sim.xpos[:, self.cylinder],
      "goal": self.sim.xpos[:, self.goal],
    }
    return {"policy": blocks}
