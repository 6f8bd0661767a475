"""Walking robots under velocity commands: commands, delays, pushes, feet, rewards, observations.

The rewards are those of legged_gym (Rudin et al. 2021, arXiv 2109.11978), MuJoCo Playground
(`_src/locomotion/go1/joystick.py`) and mjlab's velocity tasks, per step instead of per second.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import actuator, quat, randomize
from tasks.shared.command import VelocityCommands
from tasks.shared.quat import AXIAL, POLAR

TOUCHING = 1.0  # force from which a foot stands and a body collides [N]


@dataclass
class Config(base.Config):
  """Settings of a walking robot; a robot's own defaults are in its task."""

  action_scale: float = option(
    0.5, "joint angle from the home pose that an action of 1 asks for", "rad", low=0
  )
  action_delay: float = option(0.01, "time until an action reaches the motors", "s", low=0)
  action_delay_spread: float = option(
    0.01, "largest deviation from it, drawn per episode in training", "s", low=0
  )
  actuator_network: str | None = option(
    None, "TorchScript file that gives the torques in place of the servos"
  )
  actuator_samples: int = option(3, "states of a joint that this network sees", low=1)
  actuator_interval: int = option(2, "physics steps between them", low=1)
  command_forward: float = option(1.0, "largest commanded speed forward and backward", "m/s", low=0)
  command_sideways: float = option(0.5, "largest commanded speed to either side", "m/s", low=0)
  command_turn: float = option(1.0, "largest commanded rate of turning", "rad/s", low=0)
  command_standing: float = option(0.1, "share of the commands that is to stand still", low=0, high=1)
  command_seconds: float = option(
    10.0, "longest time between commands; the shortest is half of it", "s", low=0.1
  )
  settling_seconds: float = option(
    1.0, "time after a change of command in which errors do not count in the metrics", "s", low=0
  )
  start_angle: float = option(0.2, "largest offset of a joint at the start of an episode", "rad", low=0)
  start_velocity: float = option(0.5, "largest speed of the trunk at the start", "m/s, rad/s", low=0)
  push_seconds: float = option(10.0, "longest time between pushes; the shortest is half of it", "s", low=0.1)
  push_speed: float = option(
    0.5, "largest change of the trunk's speed by a push, along x and along y", "m/s", low=0
  )
  friction_min: float = option(0.5, "least coefficient of friction in training", low=0)
  friction_max: float = option(1.25, "greatest coefficient of friction in training", low=0)
  trunk_mass: float = option(0.2, "largest deviation of the trunk's mass, as a fraction of it", low=0, high=1)
  tracking_width: float = option(
    0.5, "error of speed or turning at which their rewards fall to 1/e", "m/s, rad/s", low=0.01
  )
  flight_seconds: float = option(
    0.2, "time in the air from which a step is paid for; a shorter one is charged", "s", low=0
  )
  fall_tilt: float = option(
    0.5, "cosine of the trunk's tilt below which the robot has fallen", low=-1, high=1
  )
  noise_velocity: float = option(0.1, "largest error of the trunk's velocity", "m/s", low=0)
  noise_angular_velocity: float = option(0.2, "largest error of the trunk's angular velocity", "rad/s", low=0)
  noise_gravity: float = option(0.05, "largest error of the direction of gravity", low=0)
  noise_angles: float = option(0.01, "largest error of a joint angle", "rad", low=0)
  noise_speeds: float = option(1.5, "largest error of a joint speed", "rad/s", low=0)
  reward_velocity: float = option(1.0, "weight of following the commanded velocity")
  reward_turn: float = option(0.5, "weight of following the commanded rate of turning")
  reward_vertical: float = option(-1.0, "weight of the squared speed along the trunk's z axis", "s^2/m^2")
  reward_rocking: float = option(-0.02, "weight of the squared rates of roll and pitch", "s^2/rad^2")
  reward_tilt: float = option(-1.0, "weight of the squared sine of the tilt")
  reward_effort: float = option(-2e-4, "weight of the summed squared torques", "1/(N m)^2")
  reward_change: float = option(-0.01, "weight of the summed squared change of the action")
  reward_pose: float = option(-0.05, "weight of the summed squared angles from the home pose", "1/rad^2")
  reward_still: float = option(-0.1, "weight of the summed angles from home while told to stand", "1/rad")
  reward_flight: float = option(1.0, "weight of a foot's time in the air, beyond flight_seconds", "1/s")
  reward_slip: float = option(-0.03, "weight of the squared speed of standing feet on the ground", "s^2/m^2")
  reward_collision: float = option(-0.2, "weight of the number of bodies that hit something they should not")
  reward_fallen: float = option(-1.0, "weight of a fall")


class Task(base.Task):
  """Angles that the joints' servos go to are the action; the policy sees what a robot's sensors tell.

  A robot names its parts; its joints are in the order of its actuators.
  """

  vary = ("geom_friction", "body_mass", "body_inertia")
  outputs: Mapping[str, str] = {"sensordata": "mean", "cfrc_ext": "mean", "actuator_force": "last"}
  joints: tuple[str, ...]
  quiet: tuple[str, ...] = ()  # joints that should stay near home; none: all
  feet: tuple[str, ...]  # touch sensors; with `_velocity` behind its name, the sensor of a foot's velocity
  trunk: str  # the body that falls
  guarded: tuple[str, ...]  # bodies that should not touch anything
  mirrored: base.Reflection  # what becomes of the joints in a mirror that exchanges left and right
  config: Config

  @classmethod
  def scene(cls, config: Config) -> Path | str:
    """Take the servos out where a network gives the torques."""
    return actuator.without_servos(cls.robot) if config.actuator_network else cls.robot

  def setup(self) -> None:
    """Look the robot's parts up; in training, build each robot differently and let pushes happen."""
    config = self.config
    self.angles, self.speeds = self.joints_of(*self.joints)
    self.home, self.stance = self.key_of("home")  # [nq], joint angles [nu] [rad]
    self.touch, self.chest = self.sensor_of(*self.feet), self.body_of(self.trunk)
    self.sliding = self.sensor_of(*(f"{foot}_velocity" for foot in self.feet))
    self.limbs = self.body_of(*self.guarded)
    self.posed = self._pick([self.joints.index(name) for name in self.quiet or self.joints])
    self.angle_scale = torch.full_like(
      self.stance, config.action_scale
    )  # of an action of 1, by joint [nu] [rad]
    middles = torch.arange(config.substeps, device=self.device) + 0.5
    self.substep_time = self.model.timestep * middles  # since the action [s]
    self.command = self.buffer(3)  # forward, to the left [m/s], turning to the left [rad/s]
    self.command_age = self.buffer()  # [s]
    self.last_action = self.buffer(self.num_actions)
    self.change = self.buffer(self.num_actions)  # of the action, from the step before to this one
    self.delay = self.buffer()  # time until an action reaches the motors [s]
    self.air_time = self.buffer(len(self.feet))  # since each foot left the ground [s]
    self.flight = self.buffer(len(self.feet))  # the time in the air that ended with this step, else 0 [s]
    self.errors = self.buffer(2)  # of speed [m/s] and turning [rad/s], while a command is not new
    if config.actuator_network:
      network = config.actuator_network, config.actuator_samples, config.actuator_interval
      self.network = actuator.Network(*network, self.device)
      self.past = self.buffer(2, self.network.memory, self.num_actions)  # what the network sees of the joints
    highest = (config.command_forward, config.command_sideways, config.command_turn)
    self.commands = VelocityCommands(self, highest, config.command_standing)
    self.every(config.command_seconds / 2, config.command_seconds, self.new_command)
    if self.training:
      self.every(config.push_seconds / 2, config.push_seconds, self.push)
    self.delay_spread = config.action_delay_spread if self.training else 0.0  # [s]
    if config.action_delay + self.delay_spread > self.dt:
      raise ValueError(f"env.action_delay + env.action_delay_spread: at most a control step, {self.dt:g} s")
    self.build()

  def build(self) -> None:
    """In training, give each environment a ground and a trunk of its own; drawn once, they cost nothing."""
    config = self.config
    randomize.Randomization(
      self,
      {
        "friction": randomize.friction(config.friction_min, config.friction_max),
        "trunk": randomize.mass(1 - config.trunk_mass, 1 + config.trunk_mass, self.chest),
      },
    ).apply()

  def initial_state(self) -> dict[str, Tensor]:
    """Start near the home pose, in slight motion, with a new command and a new delay."""
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
    }

  def new_command(self) -> dict[str, Tensor]:
    """Draw another command [N, 3]."""
    return {"command": self.commands.draw(), "command_age": torch.zeros_like(self.command_age)}

  def push(self) -> dict[str, Tensor]:
    """Change the trunk's horizontal velocity at once: return qvel [N, nv]."""
    qvel, most = self.sim.qvel.clone(), self.config.push_speed
    qvel[:, :2] += self.random.uniform("push", (2,), -most, most)
    return {"qvel": qvel}

  # ---- a step ----

  def control(self) -> None:
    """Note how the action changes."""
    self.change.copy_(self.action - self.last_action)
    self.last_action.copy_(self.action)

  def simulate(self) -> None:
    """Let the control step's time pass; the motors keep the old targets until the action has reached them."""
    targets = self.targets()
    if not self.config.actuator_network:
      self.advance(self.config.substeps, targets)
      return
    for target in targets.unbind(1):
      self.network.remember(self.past, target - self.sim.qpos[:, self.angles], self.sim.qvel[:, self.speeds])
      self.sim.ctrl.copy_(self.network.torques(self.past))
      self.advance(1)

  def targets(self) -> Tensor:
    """Return joint angles for the motors in each physics step [num_envs, substeps, nu] [rad]."""
    late = (self.substep_time < self.delay.unsqueeze(1)).unsqueeze(2)
    action = self.action.unsqueeze(1) - late * self.change.unsqueeze(1)
    return self.stance + self.angle_scale * action

  def update(self) -> None:
    """Time the feet's flights, and measure errors, but for a while after a command has changed."""
    standing = self.contacts()
    self.flight.copy_(self.air_time * standing)
    self.air_time.add_(self.dt).mul_(~standing)
    self.command_age += self.dt
    velocity, _ = self.motion()
    off = torch.hypot(*(velocity[:, :2] - self.command[:, :2]).unbind(1))
    errors = torch.stack([off, (self.sim.qvel[:, 5] - self.command[:, 2]).abs()], 1)
    settled = (self.command_age > self.config.settling_seconds).unsqueeze(1)
    self.errors.copy_(torch.where(settled, errors, self.errors))

  def reward(self) -> dict[str, Tensor]:
    """Pay for following the command, on feet that step; charge for restless motion and effort."""
    velocity, gravity = self.motion()
    turning, width = self.sim.qvel[:, 3:6], self.config.tracking_width
    moves, bent = self.moves(), self.bend()
    return {
      "velocity": (-(velocity[:, :2] - self.command[:, :2]).square().sum(1) / width**2).exp(),
      "turn": (-(turning[:, 2] - self.command[:, 2]).square() / width**2).exp(),
      "vertical": velocity[:, 2].square(),
      "rocking": turning[:, :2].square().sum(1),
      "tilt": gravity[:, :2].square().sum(1),
      "effort": self.sim.actuator_force.square().sum(1),
      "change": self.change.square().sum(1),
      "pose": bent[:, self.posed].square().sum(1),
      "still": bent.abs().sum(1) * ~moves,
      "flight": ((self.flight - self.config.flight_seconds) * (self.flight > 0)).sum(1) * moves,
      "slip": self.slip().sum(1),
      "collision": (self.force(self.limbs) > TOUCHING).sum(1),
      "fallen": self.terminated(),
    }

  def terminated(self) -> Tensor:
    """Fail when the robot lies on its trunk or leans too far."""
    tilted = quat.upright(self.sim.qpos[:, 3:7]) < self.config.fall_tilt
    return (self.force(self.chest).amax(1) > TOUCHING) | tilted

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show what a robot measures and is told, and the critic what it cannot measure."""
    velocity, gravity = self.motion()
    policy = {
      "velocity": velocity,
      "angular_velocity": self.sim.qvel[:, 3:6],
      "gravity": gravity,
      "command": self.command,
      "angles": self.bend(),
      "speeds": self.sim.qvel[:, self.speeds],
      "action": self.action,
    }
    hidden = {
      "feet": self.sim.sensordata[:, self.touch],
      "air_time": self.air_time,
      "friction": self.sim.geom_friction[:, 0, 0],
      "mass": self.sim.body_mass[:, self.chest],
      "delay": self.delay,
    }
    return {"policy": policy, "critic": policy | hidden}

  def metrics(self) -> dict[str, Tensor]:
    """Log how far speed [m/s] and turning [rad/s] are from a command that has settled."""
    return {"velocity_error": self.errors[:, 0], "yaw_error": self.errors[:, 1]}

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange the limbs at the left and the right."""
    signs = {"velocity": POLAR, "angular_velocity": AXIAL, "gravity": POLAR, "command": [1, -1, -1]}
    return signs | dict.fromkeys(("angles", "speeds", "action"), self.mirrored)

  # ---- what the robot does ----

  def motion(self) -> tuple[Tensor, Tensor]:
    """Return the trunk's velocity [num_envs, 3] [m/s] and the direction of gravity, both in its own frame."""
    rotation = quat.to_matrix(self.sim.qpos[:, 3:7])
    return quat.to_body(rotation, self.sim.qvel[:, :3]), -rotation[:, 2]

  def bend(self) -> Tensor:
    """Return the joints' angles from the home pose [num_envs, nu] [rad]."""
    return self.sim.qpos[:, self.angles] - self.stance

  def moves(self) -> Tensor:
    """Return where the robot is told to move [num_envs] bool."""
    return self.command.any(1)

  def contacts(self) -> Tensor:
    """Return which feet stand on something [num_envs, feet] bool."""
    return self.sim.sensordata[:, self.touch] > TOUCHING

  def slip(self) -> Tensor:
    """Return the squared speed of standing feet along the ground [num_envs, feet] [m^2/s^2]."""
    velocity = self.sim.sensordata[:, self.sliding].unflatten(1, (-1, 3))
    return velocity[:, :, :2].square().sum(2) * self.contacts()

  def force(self, bodies: slice | Tensor) -> Tensor:
    """Return the contact force on bodies [num_envs, bodies] [N]."""
    return self.sim.cfrc_ext[:, bodies, 3:].square().sum(2).sqrt()
