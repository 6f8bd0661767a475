"""Quadruped getup: a robot dog that fell down anyhow gets up and stands still.

It is dropped with its joints anyhow, held stiff until it lies, and then left to its own for the rest of the
episode. Start, action and rewards are after MuJoCo Playground's (`_src/locomotion/go1/getup.py`).
"""

from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor

from tasks import base, quadruped
from tasks.base import option
from tasks.shared import quat, randomize

TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 20_000_000}
PPO: dict[str, object] = {"hidden": [128, 64, 32], "horizon": 24, "epochs": 3, "log_std_init": -0.7}


@dataclass
class Config(base.Config):
  """Settings of the quadruped that gets up."""

  episode_steps: int = option(350, "control steps until the time limit", low=1)
  action_scale: float = option(0.5, "angle from where a joint is that an action of 1 asks for", "rad", low=0)
  drop_height: float = option(0.4, "height of the trunk from which the robot is dropped", "m", low=0)
  lying_seconds: float = option(0.7, "time until the robot may move", "s", low=0)
  start_standing: float = option(0.2, "share of the episodes in training that start at home", low=0, high=1)
  friction_min: float = option(0.5, "least coefficient of friction in training", low=0)
  friction_max: float = option(1.25, "greatest coefficient of friction in training", low=0)
  trunk_mass: float = option(0.2, "largest deviation of the trunk's mass, as a fraction of it", low=0, high=1)
  full_height: float = option(0.26, "height of the trunk that earns all that height can", "m", low=0.01)
  pose_width: float = option(
    1.5, "root of the summed squared angles from home at which that reward falls to 1/e", "rad", low=0.01
  )
  still_width: float = option(
    3.0, "root of the summed squared joint speeds at which that reward falls to 1/e", "rad/s", low=0.01
  )
  success_height: float = option(0.22, "height from which the trunk is at standing height", "m", low=0)
  success_up: float = option(0.95, "cosine of the trunk's tilt from which it is upright", low=-1, high=1)
  success_speed: float = option(0.2, "speed of the trunk up to which it is still", "m/s", low=0)
  noise_angular_velocity: float = option(0.2, "largest error of the trunk's angular velocity", "rad/s", low=0)
  noise_gravity: float = option(0.05, "largest error of the direction of gravity", low=0)
  noise_angles: float = option(0.01, "largest error of a joint angle", "rad", low=0)
  noise_speeds: float = option(1.5, "largest error of a joint speed", "rad/s", low=0)
  reward_upright: float = option(1.0, "weight of the way from the back, 0, to the feet, 1")
  reward_height: float = option(1.0, "weight of the trunk's height as a fraction of full_height")
  reward_pose: float = option(1.0, "weight of standing with the joints at home, 0 to 1")
  reward_still: float = option(1.0, "weight of standing with the joints at rest, 0 to 1")
  reward_effort: float = option(-1e-4, "weight of the summed squared torques", "1/(N m)^2")
  reward_change: float = option(-0.01, "weight of the summed squared change of the action")
  reward_limit: float = option(-0.05, "weight of the number of joints in the outer 2 % of their ranges")


class Task(base.Task):
  """Twelve joints; 42 numbers for the policy, 49 for the critic."""

  robot = quadruped.Task.robot
  vary = ("geom_friction", "body_mass", "body_inertia")
  outputs = ("actuator_force",)
  config: Config

  def setup(self) -> None:
    """Look the joints and their ranges up; in training, build each robot differently."""
    config, joints = self.config, quadruped.Task.joints
    self.angles, self.speeds = self.qpos_of(*joints), self.qvel_of(*joints)
    self.home, self.stance = self.key_of("home")  # [nq], joint angles [12] [rad]
    ranges = self.constant(self.model.jnt_range)[[self.model.joint_id(name) for name in joints]]
    self.low, self.high = ranges.unbind(1)  # [12] [rad]
    self.middle, self.half = (self.low + self.high) / 2, (self.high - self.low) / 2  # [12] [rad]
    self.trunk = self.body_of(quadruped.Task.trunk)
    self.held = self.buffer(12)  # the joints' angles while the robot comes to lie [rad]
    self.waits = self.buffer()  # time until it may move [s]
    self.last_action = self.buffer(12)
    self.change = self.buffer(12)  # of the action, from the step before to this one
    randomize.Randomization(
      self,
      {
        "friction": randomize.friction(config.friction_min, config.friction_max),
        "trunk": randomize.mass(1 - config.trunk_mass, 1 + config.trunk_mass, self.trunk),
      },
    ).apply()

  def initial_state(self) -> dict[str, Tensor]:
    """Start in the air in any orientation, with any angles; in training, sometimes at home."""
    random = self.random.uniform("start", (16,))
    qpos = self.home.expand(self.num_envs, -1).clone()
    qpos[:, 2].fill_(self.config.drop_height)
    qpos[:, 3:7] = any_orientation(random[:, 1:4])
    qpos[:, self.angles] = self.low + (self.high - self.low) * random[:, 4:]
    stands = random[:, :1] < self.config.start_standing * self.training
    qpos = torch.where(stands, self.home, qpos)
    waits = torch.full_like(self.waits, self.config.lying_seconds)
    return {"qpos": qpos, "held": qpos[:, self.angles], "waits": waits}

  def control(self) -> None:
    """Have the servos go to angles about where the joints are, within their ranges."""
    self.change.copy_(self.action - self.last_action)
    self.last_action.copy_(self.action)
    asked = self.sim.qpos[:, self.angles] + self.config.action_scale * self.action
    waits = (self.waits > self.dt / 2).unsqueeze(1)
    self.sim.ctrl.copy_(torch.where(waits, self.held, asked).clamp(self.low, self.high))

  def update(self) -> None:
    """Let the time until it may move pass."""
    self.waits.sub_(self.dt).clamp_(min=0.0)

  def reward(self) -> dict[str, Tensor]:
    """Pay for getting up and standing at rest; charge for effort and for joints at their ends."""
    up, config = self.up(), self.config
    height = (self.sim.qpos[:, 2] / config.full_height).clamp(0.0, 1.0)
    standing = height * (2 * up - 1).clamp(min=0.0)
    fraction = (self.sim.qpos[:, self.angles] - self.middle) / self.half
    speeds = self.sim.qvel[:, self.speeds]
    return {
      "upright": (1 + up) / 2,
      "height": height,
      "pose": standing * (-self.bend().square().sum(1) / config.pose_width**2).exp(),
      "still": standing * (-speeds.square().sum(1) / config.still_width**2).exp(),
      "effort": self.sim.actuator_force.square().sum(1),
      "change": self.change.square().sum(1),
      "limit": (fraction.abs() > 0.98).sum(1),
    }

  def success(self) -> Tensor:
    """Succeed by standing upright, at height and still."""
    config, qvel = self.config, self.sim.qvel
    high = self.sim.qpos[:, 2] > config.success_height
    return high & (self.up() > config.success_up) & (qvel[:, :3].norm(dim=1) < config.success_speed)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show what a robot measures, and the critic what it cannot measure."""
    rotation = quat.to_matrix(self.sim.qpos[:, 3:7])
    policy = {
      "angular_velocity": self.sim.qvel[:, 3:6],
      "gravity": -rotation[:, 2],
      "angles": self.bend(),
      "speeds": self.sim.qvel[:, self.speeds],
      "action": self.action,
    }
    hidden = {
      "velocity": quat.to_body(rotation, self.sim.qvel[:, :3]),
      "height": self.sim.qpos[:, 2],
      "waits": self.waits,
      "friction": self.sim.geom_friction[:, 0, 0],
      "mass": self.sim.body_mass[:, self.trunk],
    }
    return {"policy": policy, "critic": policy | hidden}

  def metrics(self) -> dict[str, Tensor]:
    """Log the trunk's height [m] and the share of robots that stand still now."""
    return {"height": self.sim.qpos[:, 2], "standing": self.success()}

  def up(self) -> Tensor:
    """Return the cosine of the trunk's tilt [num_envs]."""
    return quat.upright(self.sim.qpos[:, 3:7])

  def bend(self) -> Tensor:
    """Return the joints' angles from home [num_envs, 12] [rad]."""
    return self.sim.qpos[:, self.angles] - self.stance


def any_orientation(random: Tensor) -> Tensor:
  """Return quaternions [num_envs, 4], uniform over rotations, from numbers [num_envs, 3] in [0, 1).

  Shoemake 1992, "Uniform random rotations".
  """
  share, one, two = random[:, 0], 2 * pi * random[:, 1], 2 * pi * random[:, 2]
  inner, outer = (1 - share).sqrt(), share.sqrt()
  return torch.stack([inner * one.sin(), inner * one.cos(), outer * two.sin(), outer * two.cos()], 1)
