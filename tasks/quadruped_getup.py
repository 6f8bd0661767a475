"""Quadruped getup: a robot dog stands up from a random fallen pose and stands still.

The robot is dropped with random joint angles and held stiff until it lies on the ground; then the policy
takes over. Start, actions and rewards follow MuJoCo Playground (`_src/locomotion/go1/getup.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor

from tasks import quadruped
from tasks.base import option
from tasks.shared import quat, randomize, sensor_errors, sensors
from tasks.shared.auto_randomize import AutomaticRandomization, ends
from tasks.shared.steadiness import Steadiness

TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 20_000_000}
PPO: dict[str, object] = {"hidden": [128, 64, 32], "horizon": 24, "epochs": 3, "log_std_init": -0.7}


@dataclass
class Config(sensor_errors.Config):
  """Settings of quadruped getup."""

  episode_steps: int = option(350, "maximum number of control steps per episode", low=1)
  action_scale: float = option(
    0.5, "offset of a joint target from the joint for an action of 1", "rad", low=0
  )
  drop_height: float = option(0.4, "trunk height from which the robot is dropped", "m", low=0)
  lying_seconds: float = option(0.7, "time before the policy takes over", "s", low=0)
  start_standing: float = option(0.2, "fraction of training episodes that start at home", low=0, high=1)
  friction_min: float = option(0.5, "smallest friction coefficient in training", low=0)
  friction_max: float = option(1.25, "largest friction coefficient in training", low=0)
  trunk_mass: float = option(0.2, "largest relative change of the trunk mass in training", low=0, high=1)
  automatic: bool = option(
    False, "let the ranges of friction and mass grow to those above where the robot gets up at their ends"
  )
  full_height: float = option(0.26, "trunk height that earns the full height reward", "m", low=0.01)
  pose_width: float = option(
    1.5, "norm of the joint offsets from home at which reward_pose falls to 1/e", "rad", low=0.01
  )
  still_width: float = option(
    3.0, "norm of the joint speeds at which reward_still falls to 1/e", "rad/s", low=0.01
  )
  success_height: float = option(0.22, "trunk height above which the robot stands", "m", low=0)
  success_up: float = option(
    0.95, "cosine of the trunk tilt above which the robot is upright", low=-1, high=1
  )
  success_speed: float = option(0.2, "trunk speed below which the robot is still", "m/s", low=0)
  noise_angular_velocity: float = option(0.2, "largest noise on the trunk angular velocity", "rad/s", low=0)
  noise_gravity: float = option(0.05, "largest noise on the gravity direction", low=0)
  noise_angles: float = option(0.01, "largest noise on a joint angle", "rad", low=0)
  noise_speeds: float = option(1.5, "largest noise on a joint speed", "rad/s", low=0)
  reward_upright: float = option(1.0, "weight of the trunk attitude: 0 on the back, 1 upright")
  reward_height: float = option(1.0, "weight of the trunk height as a fraction of full_height")
  reward_pose: float = option(1.0, "weight of standing with the joints at home, 0 to 1")
  reward_still: float = option(1.0, "weight of standing with the joints at rest, 0 to 1")
  reward_effort: float = option(-1e-4, "weight of the penalty on the sum of squared torques", "1/(N m)^2")
  reward_change: float = option(-0.01, "weight of the penalty on the summed squared change of the action")
  reward_limit: float = option(
    -0.05, "weight of the penalty on the number of joints in the outer 2 % of their ranges"
  )


class Task(sensor_errors.Task):
  """Quadruped getup task with 12 actions, joint targets; 42 observations of the policy, 49 of the critic."""

  robot = quadruped.Task.robot
  vary = ("geom_friction", "body_mass", "body_inertia")
  outputs = ("actuator_force",)
  config: Config

  def setup(self) -> None:
    """Look up the joints and their ranges; in training, randomise the robots."""
    config, joints = self.config, quadruped.Task.joints
    self.angles, self.speeds = self.qpos_of(*joints), self.qvel_of(*joints)
    self.home, self.stance = self.key_of("home")  # [nq], joint angles [12] [rad]
    ranges = self.constant(self.model.jnt_range)[[self.model.joint_id(name) for name in joints]]
    self.low, self.high = ranges.unbind(1)  # [12] [rad]
    self.middle, self.half = (self.low + self.high) / 2, (self.high - self.low) / 2  # [12] [rad]
    self.trunk = self.body_of(quadruped.Task.trunk)
    self.sensors = sensors.legged(self.model, joints, self.action_names())
    self.hidden = {"velocity": ""}  # the critic alone has it, whatever the settings
    self.make_errors()
    self.held = self.buffer(12)  # joint angles held until the policy takes over [rad]
    self.waits = self.buffer()  # time until the policy takes over [s]
    self.last_action = self.buffer(12)
    self.change = self.buffer(12)  # change of the action since the previous step
    self.noted = self.buffer(Steadiness.width(12))
    self.steadiness = Steadiness(self, joints, self.noted)
    self.randomise(
      {
        "friction": randomize.friction(config.friction_min, config.friction_max),
        "trunk": randomize.mass(1 - config.trunk_mass, 1 + config.trunk_mass, self.trunk),
      }
    )

  def randomise(self, draws: dict[str, randomize.Draw]) -> None:
    """Draw once, which costs no time in a step, or in each episode if the ranges grow."""
    self.ranges: AutomaticRandomization | None = None
    if not self.config.automatic:
      return randomize.Randomization(self, draws).apply()
    self.extent = self.buffer(ends(draws), lasting=True)
    self.probe = self.buffer(dtype=torch.int64)
    starts = {"friction": (self.config.friction_min + self.config.friction_max) / 2, "trunk": 1.0}
    self.ranges = AutomaticRandomization(self, draws, starts, (self.extent, self.probe))
    return None

  def initial_state(self) -> dict[str, Tensor]:
    """Start in the air with a random orientation and random joint angles; in training, sometimes at home."""
    random = self.random.uniform("start", (16,))
    qpos = self.home.expand(self.num_envs, -1).clone()
    qpos[:, 2].fill_(self.config.drop_height)
    qpos[:, 3:7] = any_orientation(random[:, 1:4])
    qpos[:, self.angles] = self.low + (self.high - self.low) * random[:, 4:]
    stands = random[:, :1] < self.config.start_standing * self.training
    qpos = torch.where(stands, self.home, qpos)
    waits = torch.full_like(self.waits, self.config.lying_seconds)
    robot = self.ranges.draw() if self.ranges else {}
    return {"qpos": qpos, "held": qpos[:, self.angles], "waits": waits, **robot, **self.start_errors()}

  def control(self) -> None:
    """Set the joint targets relative to the angles that are read, within the joint ranges."""
    angles = self.sim.qpos[:, self.angles]
    if self.has_errors:
      angles = self.read(self.measure())["angles"] - self.apart(self.bias)["angles"]
    self.remember_readings()
    self.steadiness.begin()
    self.change.copy_(self.action - self.last_action)
    self.last_action.copy_(self.action)
    asked = angles + self.config.action_scale * self.action
    waits = (self.waits > self.dt / 2).unsqueeze(1)
    self.sim.ctrl.copy_(torch.where(waits, self.held, asked).clamp(self.low, self.high))

  def update(self) -> None:
    """Count down the time until the policy takes over."""
    self.advance_errors()
    self.waits.sub_(self.dt).clamp_(min=0.0)
    self.steadiness.end()

  def reward(self) -> dict[str, Tensor]:
    """Reward getting up and standing still; penalise effort and joints at their limits."""
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
    """Succeed if the trunk is upright, high enough and still."""
    config, qvel = self.config, self.sim.qvel
    high = self.sim.qpos[:, 2] > config.success_height
    return high & (self.up() > config.success_up) & (qvel[:, :3].norm(dim=1) < config.success_speed)

  def measure(self) -> dict[str, Tensor]:
    """Return gyro, direction of gravity, joints, last action and velocity, which the critic alone has."""
    rotation = quat.to_matrix(self.sim.qpos[:, 3:7])
    return {
      "angular_velocity": self.sim.qvel[:, 3:6],
      "gravity": -rotation[:, 2],
      "angles": self.sim.qpos[:, self.angles],
      "speeds": self.sim.qvel[:, self.speeds],
      "action": self.action,
      "velocity": quat.to_body(rotation, self.sim.qvel[:, :3]),
    }

  def policy_blocks(self, measured: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what is measured, with joint angles as offsets from home."""
    return {**measured, "angles": measured["angles"] - self.stance}

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return what the robot measures; for the critic also what it cannot measure."""
    hidden = {
      "height": self.sim.qpos[:, 2],
      "waits": self.waits,
      "friction": self.sim.geom_friction[:, 0, 0],
      "mass": self.sim.body_mass[:, self.trunk],
    }
    return self.groups(hidden)

  def metrics(self) -> dict[str, Tensor]:
    """Return trunk height [m], whether the robot stands still, its steadiness, and its ranges' growth."""
    found = {"height": self.sim.qpos[:, 2], "standing": self.success(), **self.steadiness.metrics()}
    return found | ({"randomised": self.extent.mean(1)} if self.ranges else {})

  def up(self) -> Tensor:
    """Return the cosine of the trunk tilt [num_envs]."""
    return quat.upright(self.sim.qpos[:, 3:7])

  def bend(self) -> Tensor:
    """Return the joint offsets from home [num_envs, 12] [rad]."""
    return self.sim.qpos[:, self.angles] - self.stance


def any_orientation(random: Tensor) -> Tensor:
  """Return uniformly distributed quaternions [num_envs, 4] from numbers [num_envs, 3] in [0, 1).

  Source: Shoemake 1992, "Uniform random rotations".
  """
  share, one, two = random[:, 0], 2 * pi * random[:, 1], 2 * pi * random[:, 2]
  inner, outer = (1 - share).sqrt(), share.sqrt()
  return torch.stack([inner * one.sin(), inner * one.cos(), outer * two.sin(), outer * two.cos()], 1)
