"""Pusher: an arm of seven motors pushes a cylinder to a goal."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import gym_v5

# Places drawn for a cylinder; the first one far enough from the goal counts. In five million episodes one
# finds none.
TRIALS = 16

TRAIN = gym_v5.TRAIN | {"max_steps": 10_000_000}
PPO = gym_v5.PPO | {"log_std_init": -1.0, "reward_scale": 1.0}


@dataclass
class Config(base.Config):
  """Settings of Pusher; an episode never ends early."""

  episode_steps: int = option(100, "control steps until the time limit", low=1)
  substeps: int = option(5, "physics steps in a control step", low=1)
  start_velocity: float = option(0.005, "largest joint speed at the start of an episode", "rad/s", low=0)
  goal_distance: float = option(
    0.17, "distance from the goal within which no cylinder starts", "m", low=0, high=0.3
  )
  reward_near: float = option(-0.5, "weight of the distance between cylinder and fingertips", "1/m")
  reward_distance: float = option(-1.0, "weight of the cylinder's distance from the goal", "1/m")
  reward_control: float = option(-0.1, "weight of the summed squared controls", "1/(N m)^2")


class Task(base.Task):
  """Seven motors are the action; the observation has 23 numbers."""

  robot = gym_v5.ASSETS / "pusher_v5.xml"
  outputs = ("xpos",)
  config: Config

  def setup(self) -> None:
    """Find what the reward measures, and keep where a cylinder may start."""
    names = ("tips_arm", "object", "goal")
    self.tips, self.cylinder, self.goal = (self.model.body_id(name) for name in names)
    self.home = self.constant(self.model.qpos0)  # [nq]
    self.corner = self.constant([-0.3, -0.2])  # of the rectangle of places, relative to the goal [m]
    self.extent = self.constant([0.3, 0.4])  # of that rectangle [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start with the file's arm and a cylinder anywhere in the rectangle, but not near the goal."""
    places = self.corner + self.extent * self.random.uniform("cylinder", (TRIALS, 2))
    far = places.norm(dim=2) > self.config.goal_distance
    first = far.to(torch.int32).argmax(1)  # the first of the greatest
    qpos, qvel = torch.empty_like(self.sim.qpos).copy_(self.home), torch.zeros_like(self.sim.qvel)
    qpos[:, 7:9] = places.gather(1, first.view(-1, 1, 1).expand(-1, 1, 2)).squeeze(1)
    speed = self.config.start_velocity
    qvel[:, :7] = self.random.uniform("start velocity", (7,), -speed, speed)
    return {"qpos": qpos, "qvel": qvel}

  def reward(self) -> dict[str, Tensor]:
    """Charge for both distances and squared controls."""
    cylinder = self.sim.xpos[:, self.cylinder]
    return {
      "near": (cylinder - self.sim.xpos[:, self.tips]).norm(dim=1),
      "distance": (cylinder - self.sim.xpos[:, self.goal]).norm(dim=1),
      "control": self.sim.ctrl.square().sum(1),
    }

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show the arm's angles and speeds, and where fingertips, cylinder and goal are."""
    blocks = {
      "angle": self.sim.qpos[:, :7],
      "speed": self.sim.qvel[:, :7],
      "tips": self.sim.xpos[:, self.tips],
      "cylinder": self.sim.xpos[:, self.cylinder],
      "goal": self.sim.xpos[:, self.goal],
    }
    return {"policy": blocks}
