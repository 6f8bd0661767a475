"""Quadcopter: a palm-sized drone flies to a target that moves every few seconds, and hovers there.

The reward follows IsaacGymEnvs 1.5.1 (`isaacgymenvs/tasks/quadcopter.py`), with an additional term for the
last decimetre. The drone of IsaacGymEnvs tilts its rotors and flies to one fixed target. This drone has four
fixed rotors that follow their commands with a lag.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from tasks import base
from tasks.base import option
from tasks.shared import quat
from tasks.shared.quat import AXIAL, POLAR

TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 3_000_000}
PPO: dict[str, object] = {
  "horizon": 32,
  "minibatches": 4,
  "reference_minibatch": 4096,
  "hidden": [64, 64],
  "gamma": 0.97,  # with 0.99, noise outweighs the reward of the last decimetres: errors of 3 to 40 cm remain
  "kl_target": 0.016,
  "log_std_init": -1.0,  # with 0, the drone tumbles before it learns the effect of its rotors
}


@dataclass
class Config(base.Config):
  """Settings of Quadcopter. The best return is nearly five times `episode_steps`."""

  episode_steps: int = option(600, "maximum number of control steps per episode", low=1)
  substeps: int = option(4, "number of physics steps per control step", low=1)
  target_seconds: float = option(4.0, "time between new targets", "s", low=0.01)
  room: float = option(1.0, "largest offset of starts and targets from the centre of the room", "m", low=0)
  middle_height: float = option(2.0, "height of the centre of the room above the floor", "m", low=0)
  start_tilt: float = option(0.3, "largest component x, y or z of the start quaternion before normalisation")
  start_speed: float = option(0.5, "largest start velocity along and about each axis", "m/s, rad/s", low=0)
  crash_height: float = option(0.1, "height below which the drone has crashed", "m")
  lost_distance: float = option(5.0, "distance from the target beyond which the drone is lost", "m", low=0)
  success_distance: float = option(
    0.1, "distance from the target below which hovering is a success", "m", low=0
  )
  success_speed: float = option(0.2, "speed below which hovering is a success", "m/s", low=0)
  reward_near: float = option(1.0, "weight of closeness, 1 / (1 + (distance / 1 m)^2)")
  reward_precise: float = option(2.0, "weight of precision, 1 / (1 + distance / 0.2 m)")
  reward_upright: float = option(1.0, "weight of closeness / (1 + tilt^2), tilt = 1 - cosine to the vertical")
  reward_still: float = option(1.0, "weight of closeness / (1 + (yaw rate / 1 rad/s)^2)")
  reward_jitter: float = option(-0.2, "weight of the penalty on the mean squared change of the action")


class Task(base.Task):
  """Quadcopter task with 4 actions, the thrusts of the rotors."""

  robot = base.ASSETS / "quadcopter" / "robot.xml"
  outputs = ()
  config: Config

  def setup(self) -> None:
    """Create buffers and the event that moves the target."""
    self.middle = self.constant([0.0, 0.0, self.config.middle_height])  # centre of the room [3] [m]
    self.target = self.buffer(3)  # [N, 3] [m]
    room, height = self.config.room, self.config.middle_height
    corners = (-room, -room, height - room), (room, room, height + room)
    self.commands = base.Commands.position(self.target, *corners)
    self.clock = self.buffer()  # time since the last new target [N] [s]
    self.before = self.buffer(self.num_actions)  # previous action [N, 4]
    self.change = self.buffer()  # mean squared change of the action [N]
    seconds = self.config.target_seconds
    self.every(seconds, seconds, self.new_target)

  def initial_state(self) -> dict[str, Tensor]:
    """Start at a random position in the room, tilted and moving, with the rotors at rest."""
    turn, speed = self.config.start_tilt, self.config.start_speed
    turned = self.random.uniform("start attitude", (3,), -turn, turn)
    attitude = normalize(torch.cat([torch.ones_like(turned[:, :1]), turned], 1), dim=1)
    return {
      "qpos": torch.cat([self.random_position("start"), attitude], 1),
      "qvel": self.random.uniform("start velocity", (6,), -speed, speed),
      **self.new_target(),
    }

  def new_target(self) -> dict[str, Tensor]:
    """Return random targets [N, 3] in the room, and a clock [N] at zero."""
    return {"target": self.random_position("target"), "clock": torch.zeros_like(self.clock)}

  def random_position(self, purpose: str) -> Tensor:
    """Return random points [N, 3] [m] in the room."""
    return self.middle + self.random.uniform(purpose, (3,), -self.config.room, self.config.room)

  def update(self) -> None:
    """Advance the clock; compute the change of the action."""
    self.clock += self.dt
    self.change.copy_((self.action - self.before).square().mean(1))
    self.before.copy_(self.action)

  def reward(self) -> dict[str, Tensor]:
    """Reward closeness and, near the target, an upright drone that does not spin; penalise jitter."""
    distance = self.distance()
    near = 1 / (1 + distance.square())
    tilt = 2 * self.sim.qpos[:, 4:6].square().sum(1)  # 1 - cosine of the body's z axis to the vertical
    return {
      "near": near,
      "precise": 1 / (1 + distance / 0.2),
      "upright": near / (1 + tilt.square()),
      "still": near / (1 + self.sim.qvel[:, 5].square()),
      "jitter": self.change,
    }

  def terminated(self) -> Tensor:
    """Fail if the drone is too low or too far from the target."""
    crashed = self.sim.qpos[:, 2] < self.config.crash_height
    return crashed | (self.distance() > self.config.lost_distance)

  def success(self) -> Tensor:
    """Succeed if the drone is slow and near the target."""
    slow = self.sim.qvel[:, :3].norm(dim=1) < self.config.success_speed
    return slow & (self.distance() < self.config.success_distance)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return target, motion and vertical in the frame of the drone, and the last action."""
    rotation = quat.to_matrix(self.sim.qpos[:, 3:7])
    offset = self.target - self.sim.qpos[:, :3]
    policy = {
      "target": quat.to_body(rotation, offset),
      "up": rotation[:, 2],  # sufficient for the attitude, because only the vertical direction matters
      "velocity": quat.to_body(rotation, self.sim.qvel[:, :3]),
      "angular_velocity": self.sim.qvel[:, 3:6],
      "action": self.action,
    }
    # Without the clock, new targets are noise to the critic, larger than the effect of all actions.
    return {"policy": policy, "critic": policy | {"clock": self.clock}}

  def metrics(self) -> dict[str, Tensor]:
    """Return the distance from the target [m]."""
    return {"distance": self.distance()}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange the left and right rotors, which turn in opposite directions."""
    return {
      "target": POLAR,
      "up": POLAR,
      "velocity": POLAR,
      "angular_velocity": AXIAL,
      "action": ([3, 2, 1, 0], [1, 1, 1, 1]),
    }

  def distance(self) -> Tensor:
    """Return the distance from the target [N] [m]."""
    return (self.target - self.sim.qpos[:, :3]).norm(dim=1)
