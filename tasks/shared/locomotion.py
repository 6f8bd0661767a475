"""Legged locomotion under velocity commands: commands, delays, pushes, feet, rewards, observations.

The rewards follow legged_gym (Rudin et al. 2021, arXiv 2109.11978), MuJoCo Playground
(`_src/locomotion/go1/joystick.py`) and mjlab's velocity tasks, but per step instead of per second.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import action_path, actuator, quat, randomize, sensor_errors, sensors, steadiness
from tasks.shared.command import VelocityCommands
from tasks.shared.quat import AXIAL, POLAR

PPO: dict[str, object] = {
  "hidden": [128, 64, 32],
  "horizon": 24,
  "epochs": 3,
  "log_std_init": -1.2,
  # A bonus on noise. Without it a robot learns to stand still first, and takes its first steps late. Once it
  # walks, noise only costs.
  "entropy_coef": 0.03,
  "entropy_coef_final": 0.0,
  "entropy_steps": 4_000_000,
}
SAC: dict[str, object] = {
  "gamma": 0.97,  # a command is followed within a second
  "target_entropy": -2.0,  # noise is an error: 0.20 m/s after 0.1 million steps, and 0.34 without both
}
TOUCHING = 1.0  # force above which a foot or a body is in contact [N]


@dataclass
class Config(sensor_errors.Config):
  """Settings of a walking robot; each robot has its own defaults in its task."""

  action_scale: float = option(
    0.5, "offset of the joint target from the home pose for an action of 1", "rad", low=0
  )
  action_delay: float = option(0.01, "delay from an action to the motors", "s", low=0)
  action_delay_spread: float = option(
    0.01, "largest random change of action_delay per episode in training", "s", low=0
  )
  action_lowpass: float = option(
    0.0, "cut-off frequency of a low-pass filter on the actions; 0: none", "Hz", low=0
  )
  action_rate: float = option(0.0, "largest speed of a joint target; 0: no limit", "rad/s", low=0)
  actuator_network: str | None = option(
    None, "TorchScript file of a network that computes the joint torques; null: servos", code=True
  )
  actuator_samples: int = option(3, "number of joint states in the input of actuator_network", low=1)
  actuator_interval: int = option(2, "physics steps between the joint states of actuator_network", low=1)
  command_forward: float = option(1.0, "largest commanded forward or backward speed", "m/s", low=0)
  command_sideways: float = option(0.5, "largest commanded sideways speed", "m/s", low=0)
  command_turn: float = option(1.0, "largest commanded yaw rate", "rad/s", low=0)
  command_standing: float = option(
    0.1, "fraction of commands that ask the robot to stand still", low=0, high=1
  )
  command_seconds: float = option(
    10.0, "longest time between new commands; the shortest is half as long", "s", low=0.1
  )
  settling_seconds: float = option(
    1.0, "time after a new command during which metrics ignore tracking errors", "s", low=0
  )
  start_angle: float = option(0.2, "largest joint offset at the start of an episode", "rad", low=0)
  start_velocity: float = option(
    0.5, "largest trunk velocity at the start of an episode", "m/s, rad/s", low=0
  )
  push_seconds: float = option(
    10.0, "longest time between pushes; the shortest is half as long", "s", low=0.1
  )
  push_speed: float = option(
    0.5, "largest change of the trunk velocity by a push, along x and along y", "m/s", low=0
  )
  friction_min: float = option(0.3, "smallest friction coefficient in training", low=0)
  friction_max: float = option(1.25, "largest friction coefficient in training", low=0)
  trunk_mass: float = option(0.2, "largest relative change of the trunk mass in training", low=0, high=1)
  tracking_width: float = option(
    0.5, "velocity error at which the reward for tracking it falls to 1/e", "m/s", low=0.01
  )
  turning_width: float = option(
    0.5, "yaw rate error at which the reward for tracking it falls to 1/e", "rad/s", low=0.01
  )
  fall_tilt: float = option(0.5, "cosine of the trunk tilt below which the robot has fallen", low=-1, high=1)
  see_velocity: bool = option(
    False, "whether the policy observes the trunk's velocity, which no legged robot measures; the critic does"
  )
  history_policy: int = option(1, "number of consecutive observations in the policy input", low=1)
  noise_velocity: float = option(0.1, "largest noise on the trunk velocity", "m/s", low=0)
  noise_angular_velocity: float = option(0.2, "largest noise on the trunk angular velocity", "rad/s", low=0)
  noise_gravity: float = option(0.05, "largest noise on the gravity direction", low=0)
  noise_angles: float = option(0.01, "largest noise on a joint angle", "rad", low=0)
  noise_speeds: float = option(1.5, "largest noise on a joint speed", "rad/s", low=0)
  reward_velocity: float = option(1.0, "weight of tracking the commanded velocity")
  reward_turn: float = option(0.5, "weight of tracking the commanded yaw rate")
  reward_vertical: float = option(
    -1.0, "weight of the penalty on the squared velocity along the trunk z axis", "s^2/m^2"
  )
  reward_rocking: float = option(-0.02, "weight of the penalty on squared roll and pitch rates", "s^2/rad^2")
  reward_tilt: float = option(-1.0, "weight of the penalty on the squared sine of the tilt")
  reward_effort: float = option(-2e-4, "weight of the penalty on the sum of squared torques", "1/(N m)^2")
  reward_change: float = option(-0.01, "weight of the penalty on the summed squared change of the action")
  reward_pose: float = option(
    -0.1, "weight of the penalty on summed squared joint offsets from home", "1/rad^2"
  )
  reward_still: float = option(
    -0.1, "weight of the penalty on summed joint offsets from home under a command to stand", "1/rad"
  )
  reward_slip: float = option(
    -0.5, "weight of the penalty on the squared sliding speed of feet in contact", "s^2/m^2"
  )
  reward_collision: float = option(-0.2, "weight of the penalty on the number of bodies in unwanted contact")
  reward_fallen: float = option(-1.0, "weight of the penalty on a fall")


class Task(sensor_errors.Task):
  """Task of a walking robot: actions are joint targets, the policy observes what sensors can measure.

  A robot's task names its parts. Its joints are in the order of its actuators.
  """

  vary = ("geom_friction", "body_mass", "body_inertia")
  outputs: Mapping[str, str] = {
    "sensordata": "mean",
    "cfrc_ext": "mean",
    "actuator_force": "last",
    "site_xpos": "last",
  }
  joints: tuple[str, ...]
  quiet: tuple[str, ...] = ()  # joints that should stay near home; empty: all
  feet: tuple[str, ...]  # sites and touch sensors, with sensors `<foot>_velocity` and `<foot>_spin`
  resting: tuple[float, ...]  # heights of these sites when the robot stands at home [feet] [m]
  trunk: str  # body: its contact or tilt is a fall
  guarded: tuple[str, ...]  # bodies with penalised contacts
  mirrored: base.Reflection  # mirror image of the joints when left and right are exchanged
  commands: VelocityCommands
  config: Config

  @classmethod
  def scene(cls, config: Config) -> Path | str:
    """Return the robot, without its servos if a network computes the torques."""
    return actuator.without_servos(cls.robot) if config.actuator_network else cls.robot

  def setup(self) -> None:
    """Look up the parts of the robot; in training, randomise the robots and push them."""
    config = self.config
    self.angles, self.speeds = self.joints_of(*self.joints)
    self.home, self.stance = self.key_of("home")  # [nq], joint angles [nu] [rad]
    self.chest, self.limbs = self.body_of(self.trunk), self.body_of(*self.guarded)
    self._find_feet()
    self.posed = self._pick([self.joints.index(name) for name in self.quiet or self.joints])
    self.angle_scale = torch.full_like(self.stance, config.action_scale)  # action scale by joint [nu] [rad]
    self.command = self.buffer(3)  # forward, to the left [m/s], turning to the left [rad/s]
    self.command_age = self.buffer()  # [s]
    self.last_action = self.buffer(self.num_actions)
    self.change = self.buffer(self.num_actions)  # change of the action since the previous step
    self.delay = self.buffer()  # delay from an action to the motors [s]
    self.air_time = self.buffer(len(self.feet))  # time since each foot left the ground [s]
    self.flight = self.buffer(len(self.feet))  # swing time of feet that landed in this step, else 0 [s]
    self.errors = self.buffer(2)  # velocity [m/s] and yaw rate [rad/s] errors of a settled command
    if config.actuator_network:
      network = config.actuator_network, config.actuator_samples, config.actuator_interval
      self.network = actuator.Network(*network, self.device)
      self.past = self.buffer(2, self.network.memory, self.num_actions)  # input history of the network
    highest = (config.command_forward, config.command_sideways, config.command_turn)
    self.commands = VelocityCommands(self, self.command, highest, config.command_standing)
    asked = "commanded velocity ahead and to the left, and yaw rate"
    self.sensors = {
      **sensors.legged(self.model, self.joints, self.action_names()),
      "command": base.Sensor(tuple(self.commands.ranges), "m/s, m/s, rad/s", asked),
    }
    self.hidden = {} if config.see_velocity else {"velocity": "env.see_velocity=true"}
    self.make_errors()
    self.every(config.command_seconds / 2, config.command_seconds, self.new_command)
    if self.training:
      self.every(config.push_seconds / 2, config.push_seconds, self.push)
    self.delay_spread = config.action_delay_spread if self.training else 0.0  # [s]
    late = action_path.steps(config.action_delay + self.delay_spread, self.dt)
    self.sent = self.buffer(late + 1, self.num_actions)  # filtered actions, the latest first
    self.path = action_path.ActionPath(self.sent, self.dt, config.substeps, self.action_filter())
    self.noted = self.buffer(steadiness.Walking.width(self.num_actions, len(self.feet)))
    self.steadiness = steadiness.Walking(self, self.noted)
    self.build()

  def _find_feet(self) -> None:
    """Look up sites and sensors of the feet."""
    self.touch, self.soles = self.sensor_of(*self.feet), self.site_of(*self.feet)
    self.moving = self.sensor_of(*(f"{foot}_velocity" for foot in self.feet))
    self.turning = self.sensor_of(*(f"{foot}_spin" for foot in self.feet))
    self.radius = self.constant(self.resting)  # from the sites down to the ground [feet] [m]

  def build(self) -> None:
    """Randomise friction and trunk mass per environment in training; drawn once, this costs no time."""
    config = self.config
    randomize.Randomization(
      self,
      {
        "friction": randomize.friction(config.friction_min, config.friction_max),
        "trunk": randomize.mass(1 - config.trunk_mass, 1 + config.trunk_mass, self.chest),
      },
    ).apply()

  def initial_state(self) -> dict[str, Tensor]:
    """Start near the home pose with a small velocity, a new command and a new delay."""
    config = self.config
    random = self.random.uniform("start", (7 + self.num_actions,), -1.0, 1.0)
    qpos, qvel = self.home.expand(self.num_envs, -1).clone(), torch.zeros_like(self.sim.qvel)
    qpos[:, self.angles] += config.start_angle * random[:, 7:]
    qvel[:, :6] = config.start_velocity * random[:, 1:7]
    delay = config.action_delay + self.delay_spread * random[:, 0]
    settled = torch.full_like(delay, config.settling_seconds)  # errors count from the first step
    return {
      "qpos": qpos,
      "qvel": qvel,
      "command": self.commands.draw(),
      "command_age": settled,
      "delay": delay,
      **self.start_errors(),
    }

  def new_command(self) -> dict[str, Tensor]:
    """Return new commands [num_envs, 3] and their age, zero."""
    return {"command": self.commands.draw(), "command_age": torch.zeros_like(self.command_age)}

  def push(self) -> dict[str, Tensor]:
    """Return qvel [num_envs, nv] with a random change of the horizontal trunk velocity."""
    return {"qvel": randomize.pushed(self, self.config.push_speed)}

  # ---- a step ----

  def control(self) -> None:
    """Compute the change of the action, and send it to the motors."""
    self.remember_readings()
    self.steadiness.begin()
    self.change.copy_(self.action - self.last_action)
    self.last_action.copy_(self.action)
    self.path.send(self.action)

  def simulate(self) -> None:
    """Simulate the step; the motors keep the old targets until the delay of the action is over."""
    targets = self.targets()
    if not self.config.actuator_network:
      self.advance(self.config.substeps, targets)
      return
    for target in targets.unbind(1):
      self.network.remember(self.past, target - self.sim.qpos[:, self.angles], self.sim.qvel[:, self.speeds])
      self.sim.ctrl.copy_(self.network.torques(self.past))
      self.advance(1)

  def targets(self) -> Tensor:
    """Return the joint targets of each physics step [num_envs, substeps, nu] [rad]."""
    targets = self.stance + self.angle_scale * self.arrived()
    return targets - self.apart(self.bias)["angles"].unsqueeze(1) if self.has_errors else targets

  def arrived(self) -> Tensor:
    """Return the actions at the motors in each physics step [num_envs, substeps, nu]: filtered and late."""
    return self.path.arrived(self.delay)

  def action_filter(self) -> action_path.ActionFilter | None:
    """Return the filter of the actions on their way to the motors; None: there is none."""
    config = self.config
    if not (config.action_lowpass or config.action_rate):
      return None
    return action_path.ActionFilter.of(config.action_lowpass, config.action_rate, self.dt, self.angle_scale)

  def update(self) -> None:
    """Update the swing times of the feet and, once a command has settled, the tracking errors."""
    self.advance_errors()
    standing = self.contacts()
    self.flight.copy_(self.air_time * standing)
    self.air_time.add_(self.dt).mul_(~standing)
    self.command_age += self.dt
    velocity, _ = self.motion()
    off = torch.hypot(*(velocity[:, :2] - self.command[:, :2]).unbind(1))
    errors = torch.stack([off, (self.sim.qvel[:, 5] - self.command[:, 2]).abs()], 1)
    settled = (self.command_age > self.config.settling_seconds).unsqueeze(1)
    self.errors.copy_(torch.where(settled, errors, self.errors))
    self.steadiness.end()

  def reward(self) -> dict[str, Tensor]:
    """Reward tracking the command and taking steps; penalise other motion and effort."""
    velocity, gravity = self.motion()
    turning, config = self.sim.qvel[:, 3:6], self.config
    moves, bent = self.moves(), self.bend()
    off, turn_off = velocity[:, :2] - self.command[:, :2], turning[:, 2] - self.command[:, 2]
    return {
      "velocity": (-off.square().sum(1) / config.tracking_width**2).exp(),
      "turn": (-turn_off.square() / config.turning_width**2).exp(),
      "vertical": velocity[:, 2].square(),
      "rocking": turning[:, :2].square().sum(1),
      "tilt": gravity[:, :2].square().sum(1),
      "effort": self.sim.actuator_force.square().sum(1),
      "change": self.change.square().sum(1),
      "pose": bent[:, self.posed].square().sum(1),
      "still": bent.abs().sum(1) * ~moves,
      "slip": self.slip().sum(1),
      "collision": (self.force(self.limbs) > TOUCHING).sum(1),
      "fallen": self.terminated(),
    }

  def terminated(self) -> Tensor:
    """Fail if the trunk is in contact or tilts too far."""
    tilted = quat.upright(self.sim.qpos[:, 3:7]) < self.config.fall_tilt
    return (self.force(self.chest).amax(1) > TOUCHING) | tilted

  def measure(self) -> dict[str, Tensor]:
    """Return velocity, gyro, direction of gravity, joints, command and last action."""
    velocity, gravity = self.motion()
    return {
      "velocity": velocity,
      "angular_velocity": self.sim.qvel[:, 3:6],
      "gravity": gravity,
      "command": self.command,
      "angles": self.sim.qpos[:, self.angles],
      "speeds": self.sim.qvel[:, self.speeds],
      "action": self.action,
    }

  def policy_blocks(self, measured: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what is measured, with joint angles as offsets from home."""
    return {**measured, "angles": measured["angles"] - self.stance}

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return what the robot measures; for the critic also what it cannot measure."""
    hidden = {
      "feet": self.sim.sensordata[:, self.touch],
      "air_time": self.air_time,
      "friction": self.sim.geom_friction[:, 0, 0],
      "mass": self.sim.body_mass[:, self.chest],
      "delay": self.delay,
    }
    return self.groups(hidden)

  def metrics(self) -> dict[str, Tensor]:
    """Return the velocity [m/s] and yaw rate [rad/s] errors of a settled command, and the steadiness."""
    errors = {"velocity_error": self.errors[:, 0], "yaw_error": self.errors[:, 1]}
    return errors | self.steadiness.metrics()

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange the left and right limbs."""
    seen = {"velocity": POLAR} if self.config.see_velocity else {}
    signs = {**seen, "angular_velocity": AXIAL, "gravity": POLAR, "command": [1, -1, -1]}
    return signs | dict.fromkeys(("angles", "speeds", "action"), self.mirrored)

  # ---- measurements ----

  def motion(self) -> tuple[Tensor, Tensor]:
    """Return velocity [m/s] and gravity direction in the trunk frame, [num_envs, 3] each."""
    rotation = quat.to_matrix(self.sim.qpos[:, 3:7])
    return quat.to_body(rotation, self.sim.qvel[:, :3]), -rotation[:, 2]

  def bend(self) -> Tensor:
    """Return the joint offsets from the home pose [num_envs, nu] [rad]."""
    return self.sim.qpos[:, self.angles] - self.stance

  def moves(self) -> Tensor:
    """Return where the command is not to stand still [num_envs] bool."""
    return self.command.any(1)

  def contacts(self) -> Tensor:
    """Return which feet are in contact [num_envs, feet] bool."""
    return self.sim.sensordata[:, self.touch] > TOUCHING

  def sliding(self) -> tuple[Tensor, Tensor]:
    """Return the velocity along x and y of the lowest points of the feet, [num_envs, feet] each [m/s].

    A foot that rolls does not slide.
    """
    moving, turning = (
      self.sim.sensordata[:, each].unflatten(1, (-1, 3)) for each in (self.moving, self.turning)
    )
    return moving[..., 0] - self.radius * turning[..., 1], moving[..., 1] + self.radius * turning[..., 0]

  def slip(self) -> Tensor:
    """Return the squared sliding speed of feet in contact [num_envs, feet] [m^2/s^2]."""
    x, y = self.sliding()
    return (x.square() + y.square()) * self.contacts()

  def force(self, bodies: slice | Tensor) -> Tensor:
    """Return the magnitude of the contact force on bodies [num_envs, bodies] [N]."""
    return self.sim.cfrc_ext[:, bodies, 3:].square().sum(2).sqrt()
