"""Humanoid mimic: a robot of human shape tracks a reference motion, the walk of `tasks/shared/walk.py`.

The method is DeepMimic's (Peng et al. 2018, arXiv 1804.02717): rewards that fall off with the squared errors
of pose, speeds, hands and feet, and root; episodes start anywhere in the motion, and end where the robot has
lost it. Servos turn the joints to the reference's angles; actions are added to these.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import quat, runner
from tasks.shared.quat import AXIAL, POLAR
from tasks.shared.walk import Walk

LIMBS = ("left_hand", "right_hand", "left_ankle", "right_ankle")
TRAIN: dict[str, object] = {"num_envs": 2048, "max_steps": 30_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64, 32],
  "horizon": 32,
  "minibatches": 4,
  "reference_minibatch": 16384,
  "reward_transform": "none",  # it is in 0 ... 1
  "log_std_init": -1.5,  # 0.11 rad: larger ones throw it over
}


@dataclass
class Config(base.Config):
  """Settings of Humanoid mimic. A term has fallen to 1/e where its error is its width."""

  episode_steps: int = option(600, "control steps until the time limit", low=1)
  substeps: int = option(6, "physics steps in a control step", low=1)
  walk_speed: float = option(0.8, "speed of the reference", "m/s", low=0)
  walk_frames: int = option(
    30, "control steps in a cycle of the reference, in which each foot steps once", low=2
  )
  action_scale: float = option(0.5, "angle that an action of 1 adds to the reference's", "rad", low=0)
  start_angle: float = option(0.05, "largest offset of a joint at the start of an episode", "rad", low=0)
  start_velocity: float = option(0.1, "largest offset of a joint's speed there", "rad/s", low=0)
  lost_distance: float = option(
    0.5, "distance of the torso from the reference's that ends an episode", "m", low=0
  )
  width_pose: float = option(
    0.7, "root of the summed squares of joint angles and the torso's turn", "rad", low=0.01
  )
  width_speeds: float = option(3.0, "root of the summed squares of their speeds", "rad/s", low=0.01)
  width_limbs: float = option(0.16, "root of the summed squares of hands' and ankles' places", "m", low=0.01)
  width_root: float = option(0.3, "distance of the torso", "m", low=0.01)
  reward_pose: float = option(0.5, "weight of tracking joint angles and the torso's turn, 0 ... 1")
  reward_speeds: float = option(0.1, "weight of tracking joint speeds and the torso's, 0 ... 1")
  reward_limbs: float = option(0.2, "weight of tracking hands and ankles as seen from the torso, 0 ... 1")
  reward_root: float = option(0.2, "weight of tracking the torso's place, 0 ... 1")


class Task(base.Task):
  """21 servos are driven; the observation has 59 numbers."""

  robot = base.ASSETS / "humanoid" / "servos.xml"
  outputs = ("site_xpos",)
  config: Config

  def setup(self) -> None:
    """Compute the reference, a row per frame."""
    self.joints = list(self.model.actuator_names)
    self.angles, self.speeds = self.qpos_of(*self.joints), self.qvel_of(*self.joints)
    self.torso, self.limbs = self.site_of("torso"), self.site_of(*LIMBS)
    frames = self.config.walk_frames
    walk = Walk(self.model, self.config.walk_speed, frames * self.dt)
    time = torch.arange(frames, dtype=torch.float64) * self.dt
    turn = 2 * pi * time / walk.period
    # A servo lags by its damping over its stiffness: so much earlier it is told the angle in a step's middle.
    stiffness, damping = torch.tensor(self.model.actuator_biasprm[:, 1:3]).unbind(1)
    lag, middle = damping / stiffness, time + self.dt / 2
    self.tables = {
      "pose": self.table(walk.qpos(time)),
      "rate": self.table(walk.qvel(time)),
      # Derived, hands and feet are where they were one physics step ago, so the reference's are too.
      "limbs": self.table(self.places_in(walk.qpos(time - self.model.timestep))),  # from the torso [m]
      "targets": self.table(walk.qpos(middle)[:, self.angles] + lag * walk.qvel(middle)[:, self.speeds]),
      "clock": self.table(torch.stack([turn.sin(), turn.cos()], 1)),
    }
    self.count = self.buffer(dtype=torch.int64)  # control steps since the reference's torso was at x = 0

  def table(self, values: Tensor) -> Tensor:
    """Return values of the reference [frames, ...] as `at` reads them, the frame fastest."""
    return values.to(self.device, torch.float32).movedim(0, -1).contiguous()

  def at(self, name: str, frame: Tensor) -> Tensor:
    """Return what the reference has in a frame [num_envs] each: [num_envs, ...]."""
    return self.tables[name].index_select(-1, frame % self.config.walk_frames).movedim(-1, 0)

  def places_in(self, poses: Tensor) -> Tensor:
    """Return where hands and feet are in configurations [frames, nq]: from the torso [frames, 4, 3] [m]."""
    places = []
    for pose in poses.to(self.device, torch.float32):
      self.sim.qpos.copy_(pose.expand_as(self.sim.qpos))
      self.sim.forward()
      places.append(self.limb_places()[0].clone())
    return torch.stack(places)

  def initial_state(self) -> dict[str, Tensor]:
    """Start anywhere in the motion, the joints moved a little."""
    frames = self.config.walk_frames
    frame = self.random.uniform("frame", (), 0.0, float(frames)).long().clamp(max=frames - 1)
    offset = self.random.uniform("start", (2, len(self.joints)), -1.0, 1.0)
    qpos, qvel = self.at("pose", frame), self.at("rate", frame)
    qpos[:, self.angles] += self.config.start_angle * offset[:, 0]
    qvel[:, self.speeds] += self.config.start_velocity * offset[:, 1]
    return {"qpos": qpos, "qvel": qvel, "count": frame}

  def control(self) -> None:
    """Turn the servos to the reference's angles and what the action adds."""
    self.sim.ctrl.copy_(self.at("targets", self.count) + self.config.action_scale * self.action)

  def update(self) -> None:
    """Let the reference move on."""
    self.count += 1

  def reward(self) -> dict[str, Tensor]:
    """Pay for tracking in four respects."""
    angles, speeds = self.joint_errors()
    turned = 2.0 * self.sim.qpos[:, 4:7]  # the torso's turn, about [rad]: the reference is upright
    squares = {
      "pose": angles.square().sum(1) + turned.square().sum(1),
      "speeds": speeds.square().sum(1) + self.sim.qvel[:, 3:6].square().sum(1),
      "limbs": self.limb_errors().square().sum((1, 2)),
      "root": self.root_error().square().sum(1),
    }
    widths = {name: getattr(self.config, f"width_{name}") for name in squares}
    return {name: torch.exp(-square / widths[name] ** 2) for name, square in squares.items()}

  def terminated(self) -> Tensor:
    """Fail where the torso is far from the reference's."""
    return self.root_error().square().sum(1) > self.config.lost_distance**2

  def success(self) -> Tensor:
    """Succeed where the motion was tracked up to the time limit."""
    return ~self.terminated()

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show the motion's phase, the errors, and the torso's motion in its own frame."""
    angles, speeds = self.joint_errors()
    rotation = quat.to_matrix(self.sim.qpos[:, 3:7])
    return {
      "policy": {
        "clock": self.at("clock", self.count),
        "root": self.root_error(),
        "ahead": rotation[:, 0],  # the reference's axes x and z, the world's, in the torso's frame
        "up": rotation[:, 2],
        "velocity": quat.to_body(rotation, self.sim.qvel[:, :3]),
        "angular_velocity": self.sim.qvel[:, 3:6],
        "angles": angles,
        "speeds": 0.1 * speeds,
      }
    }

  def metrics(self) -> dict[str, Tensor]:
    """Log the mean error of a joint [rad], of a hand or foot [m], and of the torso [m]."""
    return {
      "joint_error": self.joint_errors()[0].abs().mean(1),
      "limb_error": self.limb_errors().square().sum(2).sqrt().mean(1),
      "root_error": self.root_error().square().sum(1).sqrt(),
    }

  def symmetry(self) -> Mapping[str, base.Reflection]:
    """Exchange left and right; the mirrored walk is half a cycle ahead."""
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

  def limb_places(self) -> Tensor:
    """Return where hands and feet are from the torso, in world axes [num_envs, 4, 3] [m]."""
    return self.sim.site_xpos[:, self.limbs] - self.sim.site_xpos[:, self.torso]

  def joint_errors(self) -> tuple[Tensor, Tensor]:
    """Return the joints' angles and speeds, less the reference's [num_envs, 21]."""
    pose, rate = self.at("pose", self.count), self.at("rate", self.count)
    angles = self.sim.qpos[:, self.angles] - pose[:, self.angles]
    return angles, self.sim.qvel[:, self.speeds] - rate[:, self.speeds]

  def limb_errors(self) -> Tensor:
    """Return where hands and feet are from the torso, less the reference's [num_envs, 4, 3] [m]."""
    return self.limb_places() - self.at("limbs", self.count)

  def root_error(self) -> Tensor:
    """Return the torso's place, less the reference's [num_envs, 3] [m]."""
    place = self.at("pose", self.count)[:, :3]
    place[:, 0] = self.config.walk_speed * self.dt * self.count
    return self.sim.qpos[:, :3] - place
