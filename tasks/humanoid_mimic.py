"""Humanoid mimic: a humanoid tracks a reference motion, the walk of `tasks/motion/walk.py`.

The method is DeepMimic (Peng et al. 2018, arXiv 1804.02717): rewards fall off with the squared errors of
pose, speeds, hands and feet, and root. Episodes start at random phases of the motion, and end where the robot
loses track of it. Servos turn the joints to the reference angles plus the actions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.motion.walk import Walk
from tasks.shared import quat, runner
from tasks.shared.quat import AXIAL, POLAR

LIMBS = ("left_hand", "right_hand", "left_ankle", "right_ankle")
TRAIN: dict[str, object] = {"num_envs": 2048, "max_steps": 30_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64, 32],
  "horizon": 32,
  "minibatches": 4,
  "reference_minibatch": 16384,
  "reward_transform": "none",  # rewards are in [0, 1]
  "log_std_init": -1.5,  # 0.11 rad; with more, the robot falls
}


@dataclass
class Config(base.Config):
  """Settings of humanoid mimic. A reward term falls to 1/e where its error equals its width."""

  episode_steps: int = option(600, "maximum number of control steps per episode", low=1)
  substeps: int = option(6, "number of physics steps per control step", low=1)
  walk_speed: float = option(0.8, "speed of the reference motion", "m/s", low=0)
  walk_frames: int = option(30, "control steps per gait cycle of the reference motion", low=2)
  action_scale: float = option(0.5, "angle that an action of 1 adds to the reference angle", "rad", low=0)
  start_angle: float = option(0.05, "largest joint offset at the start of an episode", "rad", low=0)
  start_velocity: float = option(0.1, "largest joint speed offset at the start of an episode", "rad/s", low=0)
  lost_distance: float = option(
    0.5, "distance of the torso from the reference at which the episode ends", "m", low=0
  )
  width_pose: float = option(
    0.7, "width of reward_pose: norm of joint angle and torso rotation errors", "rad", low=0.01
  )
  width_speeds: float = option(
    3.0, "width of reward_speeds: norm of joint speed and torso angular velocity errors", "rad/s", low=0.01
  )
  width_limbs: float = option(
    0.16, "width of reward_limbs: norm of the position errors of hands and ankles", "m", low=0.01
  )
  width_root: float = option(0.3, "width of reward_root: distance of the torso", "m", low=0.01)
  reward_pose: float = option(0.5, "weight of tracking joint angles and torso rotation, 0 ... 1")
  reward_speeds: float = option(0.1, "weight of tracking joint speeds and torso angular velocity, 0 ... 1")
  reward_limbs: float = option(0.2, "weight of tracking hands and ankles relative to the torso, 0 ... 1")
  reward_root: float = option(0.2, "weight of tracking the position of the torso, 0 ... 1")


class Task(base.Task):
  """Humanoid mimic task with 21 actions, offsets of servo targets, and 59 observations."""

  robot = base.ASSETS / "humanoid" / "servos.xml"
  outputs = ("site_xpos",)
  config: Config

  def setup(self) -> None:
    """Compute the reference motion, one entry per frame."""
    self.joints = list(self.model.actuator_names)
    self.angles, self.speeds = self.qpos_of(*self.joints), self.qvel_of(*self.joints)
    self.torso, self.limbs = self.site_of("torso"), self.site_of(*LIMBS)
    frames = self.config.walk_frames
    walk = Walk(self.model, self.config.walk_speed, frames * self.dt)
    time = torch.arange(frames, dtype=torch.float64) * self.dt
    turn = 2 * pi * time / walk.period
    # A servo lags by its damping over its stiffness, so its target leads the angle at mid-step by that time.
    stiffness, damping = torch.tensor(self.model.actuator_biasprm[:, 1:3]).unbind(1)
    lag, middle = damping / stiffness, time + self.dt / 2
    self.tables = {
      "pose": self.table(walk.qpos(time)),
      "rate": self.table(walk.qvel(time)),
      # Derived positions are one physics step old, so those of the reference are too.
      "limbs": self.table(self.reference_limbs(walk.qpos(time - self.model.timestep))),  # from the torso [m]
      "targets": self.table(walk.qpos(middle)[:, self.angles] + lag * walk.qvel(middle)[:, self.speeds]),
      "clock": self.table(torch.stack([turn.sin(), turn.cos()], 1)),
    }
    self.count = self.buffer(dtype=torch.int64)  # control steps since the reference torso was at x = 0

  def table(self, values: Tensor) -> Tensor:
    """Return values of the reference [frames, ...] with the frame as last dimension [..., frames]."""
    return values.to(self.device, torch.float32).movedim(0, -1).contiguous()

  def at(self, name: str, frame: Tensor) -> Tensor:
    """Return the values [num_envs, ...] of a table at frames [num_envs]."""
    return self.tables[name].index_select(-1, frame % self.config.walk_frames).movedim(-1, 0)

  def reference_limbs(self, poses: Tensor) -> Tensor:
    """Return hands and feet relative to the torso [frames, 4, 3] [m] in configurations [frames, nq]."""
    positions = []
    for pose in poses.to(self.device, torch.float32):
      self.sim.qpos.copy_(pose.expand_as(self.sim.qpos))
      self.sim.forward()
      positions.append(self.limb_positions()[0].clone())
    return torch.stack(positions)

  def initial_state(self) -> dict[str, Tensor]:
    """Start at a random frame of the motion, with random joint offsets."""
    frames = self.config.walk_frames
    frame = self.random.uniform("frame", (), 0.0, float(frames)).long().clamp(max=frames - 1)
    offset = self.random.uniform("start", (2, len(self.joints)), -1.0, 1.0)
    qpos, qvel = self.at("pose", frame), self.at("rate", frame)
    qpos[:, self.angles] += self.config.start_angle * offset[:, 0]
    qvel[:, self.speeds] += self.config.start_velocity * offset[:, 1]
    return {"qpos": qpos, "qvel": qvel, "count": frame}

  def control(self) -> None:
    """Set the servo targets to the reference plus the scaled action."""
    self.sim.ctrl.copy_(self.at("targets", self.count) + self.config.action_scale * self.action)

  def update(self) -> None:
    """Advance the reference by one frame."""
    self.count += 1

  def reward(self) -> dict[str, Tensor]:
    """Reward tracking of pose, speeds, limbs and root."""
    angles, speeds = self.joint_errors()
    turned = 2.0 * self.sim.qpos[:, 4:7]  # approximate rotation of the torso [rad]; the reference is upright
    squares = {
      "pose": angles.square().sum(1) + turned.square().sum(1),
      "speeds": speeds.square().sum(1) + self.sim.qvel[:, 3:6].square().sum(1),
      "limbs": self.limb_errors().square().sum((1, 2)),
      "root": self.root_error().square().sum(1),
    }
    widths = {name: getattr(self.config, f"width_{name}") for name in squares}
    return {name: torch.exp(-square / widths[name] ** 2) for name, square in squares.items()}

  def terminated(self) -> Tensor:
    """Fail if the torso is too far from the reference."""
    return self.root_error().square().sum(1) > self.config.lost_distance**2

  def success(self) -> Tensor:
    """Succeed if the motion was tracked until the time limit."""
    return ~self.terminated()

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the phase of the motion, the tracking errors, and torso motion in the torso frame."""
    angles, speeds = self.joint_errors()
    rotation = quat.to_matrix(self.sim.qpos[:, 3:7])
    return {
      "policy": {
        "clock": self.at("clock", self.count),
        "root": self.root_error(),
        "ahead": rotation[:, 0],  # x and z axes of the reference, those of the world, in the torso frame
        "up": rotation[:, 2],
        "velocity": quat.to_body(rotation, self.sim.qvel[:, :3]),
        "angular_velocity": self.sim.qvel[:, 3:6],
        "angles": angles,
        "speeds": 0.1 * speeds,
      }
    }

  def metrics(self) -> dict[str, Tensor]:
    """Return the mean errors of joints [rad] and of hands and feet [m], and the torso error [m]."""
    return {
      "joint_error": self.joint_errors()[0].abs().mean(1),
      "limb_error": self.limb_errors().square().sum(2).sqrt().mean(1),
      "root_error": self.root_error().square().sum(1).sqrt(),
    }

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange left and right; the mirrored walk is shifted by half a cycle."""
    joints = runner.exchange(self.joints, turning=("abdomen_z", "abdomen_x"))
    return {
      "clock": [-1, -1],
      "root": POLAR,
      "ahead": POLAR,
      "up": POLAR,
      "velocity": POLAR,
      "angular_velocity": AXIAL,
      "angles": joints,
      "speeds": joints,
      "action": joints,
    }

  def limb_positions(self) -> Tensor:
    """Return hands and feet relative to the torso, in world axes [num_envs, 4, 3] [m]."""
    return self.sim.site_xpos[:, self.limbs] - self.sim.site_xpos[:, self.torso]

  def joint_errors(self) -> tuple[Tensor, Tensor]:
    """Return the errors of joint angles [rad] and speeds [rad/s], [num_envs, 21] each."""
    pose, rate = self.at("pose", self.count), self.at("rate", self.count)
    angles = self.sim.qpos[:, self.angles] - pose[:, self.angles]
    return angles, self.sim.qvel[:, self.speeds] - rate[:, self.speeds]

  def limb_errors(self) -> Tensor:
    """Return the position errors of hands and feet, relative to the torso [num_envs, 4, 3] [m]."""
    return self.limb_positions() - self.at("limbs", self.count)

  def root_error(self) -> Tensor:
    """Return the position error of the torso [num_envs, 3] [m]."""
    reference = self.at("pose", self.count)[:, :3]
    reference[:, 0] = self.config.walk_speed * self.dt * self.count
    return self.sim.qpos[:, :3] - reference
