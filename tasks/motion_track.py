"""Motion track: a floating robot of any file tracks clips, with its whole body.

Observations, rewards and ends of episodes follow BeyondMimic (Liao et al. 2025, arXiv 2508.08241). A clip's
bodies are compared with the robot's after the clip is moved to where the robot's anchor body is and turned to
its heading; the anchor itself is compared in the world. What the robot is made of is read from its file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.motion import parts, settings, start_frames
from tasks.motion.clip import root_joint
from tasks.motion.library import Library, body_velocities
from tasks.motion.read import write_clips
from tasks.motion.start_frames import StartFrames
from tasks.shared import quat, randomize, robot_file, sensor_errors, sensors
from tasks.shared.steadiness import Steadiness

TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 30_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64, 32],
  "horizon": 24,
  "epochs": 3,
  "reward_transform": "none",  # rewards are in [0, 1]
  "log_std_init": -1.5,
  # The robot falls behind a long clip, so that the anchor's place shows the episode's age: with the final
  # observation humanoid_mimic's values ran away after 4.7 M steps, and its success fell from 0.95 to 0.21.
  "bootstrap": "next",
}

TORQUE = 0.75  # largest change of a servo's torque by an action of 1, over its largest torque
SOFT = 0.9  # part of a joint's range within which it costs nothing
SHORTEST = 0.5  # duration of an episode up to the end of its clip, if the clip is long enough [s]
ERRORS = ("anchor_place", "anchor_turn", "body_place", "body_turn", "body_velocity", "body_spin")


class Around(StrEnum):
  """What an action of 0 means."""

  reference = "reference"
  home = "home"


@dataclass
class Config(start_frames.Config, settings.Config, robot_file.LegsConfig, sensor_errors.Config):
  """Settings of motion track. A reward term falls to 1/e where its error equals its width."""

  robot: str | None = option(None, "MJCF or URDF file of a robot with legs; null: the humanoid of assets/")
  episode_steps: int = option(500, "maximum number of control steps per episode", low=1)
  substeps: int = option(4, "number of physics steps per control step", low=1)
  anchor: str | None = option(None, "body that is compared in the world; null: the free joint's")
  bodies: list[str] = option([], "bodies that are tracked; []: those that can touch something")
  ends: list[str] = option([], "bodies that end an episode; []: those at the ends of limbs")
  next_frames: int = option(2, "frames of the motion that the policy sees ahead", low=1)
  frame_spacing: int = option(2, "control steps between these frames", low=1)
  around: Around = option(
    Around.reference, "what servos turn to at an action of 0: reference (the motion's joints), or home"
  )
  action_scale: float = option(0.5, "largest change of a joint's target by an action of 1", "rad", low=0)
  lost_height: float = option(0.25, "height error of the anchor at which an episode ends", "m", low=0)
  lost_tilt: float = option(0.8, "error of the cosine of its tilt at which an episode ends", low=0)
  lost_end: float = option(0.25, "height error of an end at which an episode ends", "m", low=0)
  start_place: float = option(0.03, "largest offset of the root at the start", "m", low=0)
  start_turn: float = option(0.05, "largest rotation of the root at the start, about each axis", "rad", low=0)
  start_velocity: float = option(
    0.1, "largest change of the root's velocity at the start", "m/s, rad/s", low=0
  )
  start_angle: float = option(0.05, "largest joint offset at the start", "rad", low=0)
  push_seconds: float = option(3.0, "longest time between pushes; the shortest is a third", "s", low=0.1)
  push_speed: float = option(
    0.2, "largest change of the root velocity by a push, along x and y", "m/s", low=0
  )
  friction_min: float = option(0.5, "smallest friction coefficient in training", low=0)
  friction_max: float = option(1.25, "largest friction coefficient in training", low=0)
  trunk_mass: float = option(0.1, "largest relative change of the anchor's mass in training", low=0, high=1)
  trunk_shift: float = option(
    0.02, "largest shift of the anchor's centre of mass in training, along each axis", "m", low=0
  )
  encoder_bias: float = option(0.01, "largest error of a joint's zero, also of its servo's", "rad", low=0)
  see_velocity: bool = option(
    False, "whether the policy observes its velocity and its place in the world, which no sensor measures"
  )
  history_policy: int = option(1, "number of consecutive observations in the policy input", low=1)
  noise_anchor_place: float = option(0.02, "largest noise on the place of the motion's anchor", "m", low=0)
  noise_anchor_turn: float = option(0.02, "largest noise on its rotation matrix", low=0)
  noise_velocity: float = option(0.1, "largest noise on the anchor's velocity", "m/s", low=0)
  noise_angular_velocity: float = option(0.2, "largest noise on its angular velocity", "rad/s", low=0)
  noise_angles: float = option(0.01, "largest noise on a joint angle", "rad", low=0)
  noise_speeds: float = option(0.5, "largest noise on a joint speed", "rad/s", low=0)
  width_anchor_place: float = option(0.3, "width of reward_anchor_place", "m", low=0.01)
  width_anchor_turn: float = option(0.4, "width of reward_anchor_turn", "rad", low=0.01)
  width_body_place: float = option(0.3, "width of reward_body_place", "m", low=0.01)
  width_body_turn: float = option(0.4, "width of reward_body_turn", "rad", low=0.01)
  width_body_velocity: float = option(1.0, "width of reward_body_velocity", "m/s", low=0.01)
  width_body_spin: float = option(3.14, "width of reward_body_spin", "rad/s", low=0.01)
  reward_anchor_place: float = option(0.1, "weight of tracking the anchor's place in the world, 0 ... 1")
  reward_anchor_turn: float = option(0.1, "weight of tracking the anchor's rotation, 0 ... 1")
  reward_body_place: float = option(0.2, "weight of tracking the bodies' places, 0 ... 1")
  reward_body_turn: float = option(0.2, "weight of tracking the bodies' rotations, 0 ... 1")
  reward_body_velocity: float = option(0.2, "weight of tracking the bodies' velocities, 0 ... 1")
  reward_body_spin: float = option(0.2, "weight of tracking the bodies' angular velocities, 0 ... 1")
  reward_change: float = option(-0.02, "weight of the penalty on the summed squared change of the action")
  reward_limits: float = option(
    -0.5, "weight of the penalty on joints beyond nine tenths of their range", "1/rad"
  )


class Task(sensor_errors.Task):
  """Motion tracking task; actions change the targets of the servos."""

  vary = ("geom_friction", "body_mass", "body_inertia", "body_ipos")
  outputs = ("xpos", "xquat", "cvel", "subtree_com", "actuator_force")
  config: Config

  @classmethod
  def scene(cls, config: Any) -> Any:
    """Return the robot on a floor, an MjSpec."""
    return robot_file.legged(config, settings.HUMANOID)[1]

  def setup(self) -> None:
    """Look up the parts of the robot, read the clips, and find where episodes start."""
    config, robot = self.config, robot_file.legged(self.config, settings.HUMANOID)[0]
    if self.training:
      robot_file.announce(robot)
    self.angles, self.speeds = self.joints_of(*robot.joints)
    self.home = self.constant(robot.angles)  # [nu] [rad]
    self.anchor, bodies, ends = parts.find(config, robot, self.model)
    self.root = int(self.model.jnt_bodyid[root_joint(self.model)])
    self.bodies = torch.tensor([self.anchor, *bodies], device=self.device)  # the anchor first
    self.ends = torch.tensor(ends, device=self.device) + 1  # in self.bodies
    self.scale = self.constant(TORQUE * robot.effort / robot.stiffness).clamp(max=config.action_scale)
    # A servo lags by its damping over its stiffness, so its target leads the angle at mid-step by that time.
    self.lead = self.constant(robot.damping / robot.stiffness + self.dt / 2)  # [nu] [s]
    low, high = self.constant(self.model.jnt_range[[*map(self.model.joint_id, robot.joints)]]).unbind(1)
    self.middle, self.soft = (low + high) / 2, SOFT * (high - low) / 2  # [nu] [rad]
    self.limited = self.constant(self.model.jnt_limited[[*map(self.model.joint_id, robot.joints)]])
    self.clips = clips = settings.load(config, robot, self.model, self.dt)
    lag = self.model.timestep  # derived quantities are of the last physics step
    self.library = Library(self.model, clips, self.dt, self.device, lag, [self.anchor, *bodies])
    margin = min(round(SHORTEST / self.dt), min(self.library.counts) - 2, self.max_episode_steps)
    self.least_between_truncations = max(1, margin)
    self.begins = StartFrames(self.library, config, self.least_between_truncations, training=self.training)
    self.clip, self.frame = self.buffer(dtype=torch.int64), self.buffer(dtype=torch.int64)
    self.first_row = self.buffer(dtype=torch.int64)  # of the library, at which the episode started
    self.failures = self.buffer(self.begins.bins, lasting=True)  # by bin of start frames
    self.squares = self.buffer(len(ERRORS))  # squared errors, means over the bodies [rad^2, m^2, ...]
    self.widths = self.constant([getattr(config, f"width_{name}") for name in ERRORS])
    self.lost = self.buffer(dtype=torch.bool)  # whether the motion is lost
    self.joint_zero = self.buffer(len(robot.joints))  # errors of the joints' zeros in an episode [rad]
    self.last_action, self.change = self.buffer(self.num_actions), self.buffer(self.num_actions)
    self.noted = self.buffer(Steadiness.width(self.num_actions))
    self.steadiness = Steadiness(self, robot.joints, self.noted)
    unmeasured = dict.fromkeys(("anchor_place", "velocity"), "env.see_velocity=true")
    self.hidden = {} if config.see_velocity else unmeasured
    self.sensors = self._sensors(robot)
    self.make_errors(applied=["encoder_bias"], attitude=9)
    if self.training:
      self._disturb()

  def _sensors(self, robot: robot_file.LeggedRobot) -> dict[str, base.Sensor]:
    """Return the robot's sensors, and what the program that runs the policy takes from the clip."""
    config, anchor = self.config, self.model.body_names[self.anchor]
    frames = [1 + i * config.frame_spacing for i in range(config.next_frames)]
    ahead = tuple(
      f"{kind} of {joint}, {frame} ahead"
      for frame in frames
      for kind in ("angle", "speed")
      for joint in robot.joints
    )
    numbers = tuple(f"row {row}, column {column}" for row in range(3) for column in range(2))
    place = f"place of the motion's {anchor} in the axes of {anchor}"
    turn = f"rotation matrix of the motion's {anchor} in the axes of {anchor}"
    return {
      **sensors.legged(self.model, robot.joints, self.action_names()),
      "next": base.Sensor(ahead, "rad, 0.1 rad/s", "the clip's joints, angles less those at home"),
      "anchor_place": base.Sensor(sensors.AXES, "m", place),
      "anchor_turn": base.Sensor(numbers, "", turn),
    }

  def _disturb(self) -> None:
    """Randomise the robots of a training once, and push them from time to time."""
    config = self.config
    self.every(config.push_seconds / 3, config.push_seconds, self.push)
    randomize.Randomization(
      self,
      {
        "friction": randomize.friction(config.friction_min, config.friction_max),
        "mass": randomize.mass(1 - config.trunk_mass, 1 + config.trunk_mass, self.anchor),
        "shift": randomize.add("body_ipos", -config.trunk_shift, config.trunk_shift, self.anchor, each=True),
      },
    ).apply()

  # ---- a step ----

  def initial_state(self) -> dict[str, Tensor]:
    """Start at a frame of a clip that is drawn by the failures so far, with random offsets."""
    config, joints = self.config, len(self.home)
    failures = self.begins.after(self.failures, self.first_row, self.row(), self.lost)
    clip, frame = self.begins.draw(failures, self.random.uniform("start frame", (2,)))
    random = self.random.uniform("start", (12 + 2 * joints,), -1.0, 1.0)
    row = self.library.row(clip, frame)
    qpos, qvel = self.library.take("qpos", row).clone(), self.library.take("qvel", row).clone()
    qpos[:, :2] += config.start_place * random[:, :2]
    qpos[:, 2] += config.start_place * random[:, 2].abs()  # not into the ground
    turn = quat.from_rotation_vector(config.start_turn * random[:, 3:6])
    qpos[:, 3:7] = quat.multiply(qpos[:, 3:7], turn)
    qpos[:, self.angles] += config.start_angle * random[:, 12 : 12 + joints]
    qvel[:, :6] += config.start_velocity * random[:, 6:12]
    zero = self.training * config.encoder_bias * random[:, 12 + joints :]
    state = {"qpos": qpos, "qvel": qvel, "joint_zero": zero, **self.start_errors()}
    return state | {"clip": clip, "frame": frame, "first_row": row, "failures": failures}

  def push(self) -> dict[str, Tensor]:
    """Return qvel [num_envs, nv] with a random change of the root's horizontal velocity."""
    return {"qvel": randomize.pushed(self, self.config.push_speed)}

  def control(self) -> None:
    """Turn the servos to the motion's joints, or to home, plus the scaled action."""
    self.remember_readings()
    self.steadiness.begin()
    self.change.copy_(self.action - self.last_action)
    self.last_action.copy_(self.action)
    target = self.home
    if self.config.around == Around.reference:
      row = self.row()
      angles, speeds = self.reference_joints(row)
      target = angles + self.lead * speeds
    self.sim.ctrl.copy_(target + self.scale * self.action - self.joint_zero)

  def update(self) -> None:
    """Advance the motion by a frame, and compare the robot with it; the end of a clip truncates."""
    self.advance_errors()
    self.frame += 1
    self.compare()
    self.steadiness.end()
    ended = self.frame >= self.library.lengths[self.clip] - 1
    self.episode_steps.masked_fill_(ended, self.max_episode_steps)

  def compare(self) -> None:
    """Compute the errors of the anchor in the world and of the bodies beside the anchor."""
    row = self.row()
    wanted_place, wanted_turn, wanted_velocity, wanted_spin = (
      self.library.take(name, row) for name in ("xpos", "xquat", "linear", "angular")
    )
    (place, turn), (velocity, spin) = self.places(), self.velocities()
    heading = quat.yaw(quat.multiply(turn[:, :1], quat.conjugate(wanted_turn[:, :1])))
    beside = quat.turn(heading, wanted_place - wanted_place[:, :1])
    beside[..., :2] += place[:, :1, :2]
    beside[..., 2] += wanted_place[:, :1, 2]
    turned = quat.multiply(heading, wanted_turn)
    squares = {
      "anchor_place": (place[:, :1] - wanted_place[:, :1]).square().sum(2),
      "anchor_turn": angle(turn[:, :1], wanted_turn[:, :1]).square(),
      "body_place": (place - beside)[:, 1:].square().sum(2),
      "body_turn": angle(turn, turned)[:, 1:].square(),
      "body_velocity": (velocity - wanted_velocity)[:, 1:].square().sum(2),
      "body_spin": (spin - wanted_spin)[:, 1:].square().sum(2),
    }
    self.squares.copy_(torch.stack([squares[name].mean(1) for name in ERRORS], 1))
    config, height = self.config, (place - beside)[..., 2].abs()
    tilt = (quat.upright(turn[:, 0]) - quat.upright(wanted_turn[:, 0])).abs()
    lost = (height[:, 0] > config.lost_height) | (tilt > config.lost_tilt)
    self.lost.copy_(lost | (height[:, self.ends] > config.lost_end).any(1))

  def reward(self) -> dict[str, Tensor]:
    """Reward tracking of anchor and bodies; penalise changes of the action, and joints near their limits."""
    tracked = torch.exp(-self.squares / self.widths.square())
    excess = (self.sim.qpos[:, self.angles] - self.middle).abs() - self.soft
    return {
      **dict(zip(ERRORS, tracked.unbind(1), strict=True)),
      "change": self.change.square().sum(1),
      "limits": (excess.clamp(min=0.0) * self.limited).sum(1),
    }

  def terminated(self) -> Tensor:
    """Fail if the motion is lost: by the anchor's height or tilt, or by the height of an end."""
    return self.lost.clone()

  def success(self) -> Tensor:
    """Succeed if the motion was tracked to its end, or to the time limit."""
    return ~self.lost

  def measure(self) -> dict[str, Tensor]:
    """Return the motion's next joints, its anchor seen from the robot's, and what sensors measure."""
    row, (place, turn) = self.row(), self.places()
    away = self.library.take_first("xpos", row) - place[:, 0]
    turned = quat.multiply(quat.conjugate(turn[:, 0]), self.library.take_first("xquat", row))
    trunk = quat.to_matrix(self.sim.qpos[:, 3:7])
    return {
      "next": torch.cat(
        [self.next_joints(1 + i * self.config.frame_spacing) for i in range(self.config.next_frames)], 1
      ),
      "anchor_place": quat.to_body(quat.to_matrix(turn[:, 0]), away),
      "anchor_turn": quat.to_matrix(turned)[:, :, :2].flatten(1),
      "gravity": -trunk[:, 2],
      "velocity": quat.to_body(trunk, self.sim.qvel[:, :3]),
      "angular_velocity": self.sim.qvel[:, 3:6],
      "angles": self.sim.qpos[:, self.angles] + self.joint_zero,
      "speeds": self.sim.qvel[:, self.speeds],
      "action": self.action,
    }

  def joined(self, measured: Mapping[str, Tensor]) -> Tensor:
    """Add the attitude of the anchor, a rotation matrix, which its IMU measures."""
    return super().joined({**measured, "attitude": quat.to_matrix(self.places()[1][:, 0]).flatten(1)})

  def read(self, measured: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return `measured` with errors; late and tilted, the attitude moves the motion's anchor too."""
    readings = super().read(measured)
    turn = readings.pop("attitude").unflatten(1, (3, 3)).transpose(1, 2)
    turn = turn @ quat.to_matrix(self.library.take_first("xquat", self.row()))
    one, two, up = turn[:, :, :2].unbind(1)
    x, y, _ = self.apart(self.bias)["gravity"].unsqueeze(2).unbind(1)
    turn = torch.stack([one - x * up, two - y * up, up + x * one + y * two], 1)  # as (0, 0, -1) turns
    return {**readings, "anchor_turn": turn.flatten(1)}

  def policy_blocks(self, measured: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what is measured, with joint angles as offsets from home and scaled joint speeds."""
    return {**measured, "angles": measured["angles"] - self.home, "speeds": 0.1 * measured["speeds"]}

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return what is measured; for the critic also the bodies in the anchor's frame and the robot's draws."""
    place, turn = self.places()
    rotation = quat.to_matrix(turn[:, 0]).unsqueeze(1)
    hidden = {
      "bodies": quat.to_body(rotation, (place - place[:, :1])[:, 1:]).flatten(1),
      "friction": self.sim.geom_friction[:, 0, 0],
      "mass": self.sim.body_mass[:, self.anchor],
    }
    return self.groups(hidden)

  def metrics(self) -> dict[str, Tensor]:
    """Return mean errors of joints [rad], bodies beside the anchor and anchor [m], and the steadiness."""
    angles, _ = self.reference_joints(self.row())
    place, bodies = (self.squares[:, ERRORS.index(name)].sqrt() for name in ("anchor_place", "body_place"))
    joints = (self.sim.qpos[:, self.angles] - angles).abs().mean(1)
    errors = {"joint_error": joints, "body_error": bodies, "anchor_error": place}
    return errors | self.steadiness.metrics()

  def write_files(self, folder: Path) -> list[str]:
    """Write the clips at the control rate, as an exported policy needs them; return the names of files."""
    return write_clips(folder, self.clips, 1 / self.dt)

  # ---- measurements ----

  def row(self, ahead: int = 0) -> Tensor:
    """Return the row of the library [num_envs] of the present frame, or of one ahead."""
    return self.library.row(self.clip, self.frame + ahead)

  def reference_joints(self, row: Tensor) -> tuple[Tensor, Tensor]:
    """Return joint angles [rad] and speeds [rad/s] of the motion [num_envs, nu]."""
    return self.library.take("qpos", row)[:, self.angles], self.library.take("qvel", row)[:, self.speeds]

  def next_joints(self, ahead: int) -> Tensor:
    """Return joint angles from home [rad] and speeds [0.1 rad/s] of a frame ahead [num_envs, 2 nu]."""
    angles, speeds = self.reference_joints(self.row(ahead))
    return torch.cat([angles - self.home, 0.1 * speeds], 1)

  def places(self) -> tuple[Tensor, Tensor]:
    """Return places and rotations of the anchor and the bodies [num_envs, 1 + bodies, 3 or 4]."""
    return self.sim.xpos[:, self.bodies], self.sim.xquat[:, self.bodies]

  def velocities(self) -> tuple[Tensor, Tensor]:
    """Return velocities and angular velocities of the anchor and the bodies [num_envs, 1 + bodies, 3]."""
    sim = self.sim
    return body_velocities(sim.xpos[:, self.bodies], sim.cvel[:, self.bodies], sim.subtree_com[:, self.root])


def angle(one: Tensor, other: Tensor) -> Tensor:
  """Return the angles [..., ] [rad] between rotations, unit quaternions [..., 4]."""
  return quat.to_rotation_vector(quat.multiply(quat.conjugate(one), other)).square().sum(-1).sqrt()
