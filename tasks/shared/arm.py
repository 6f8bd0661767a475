"""Seven-joint robot arm with a gripper: control, observation and start state of its tasks.

Actions are displacements from the current pose, so that an action of zero holds the arm still.
Operational-space control, its stiffness and the largest displacements follow IsaacGymEnvs 1.5.1
(`isaacgymenvs/tasks/franka_cube_stack.py`).
"""

from dataclasses import dataclass
from enum import StrEnum
from math import sqrt
from pathlib import Path

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import osc

JOINTS = tuple(f"joint{i}" for i in range(1, 8))
LINKS = tuple(f"link{i}" for i in range(1, 8))
FINGERS = ("left_finger", "right_finger")


class Control(StrEnum):
  """Control mode of the arm."""

  joint = "joint"  # position targets of the seven joints
  osc = "osc"  # operational-space control: torques move the grasp point along and about the world axes


@dataclass
class Config(base.Config):
  """Settings of an arm task."""

  episode_steps: int = option(100, "maximum number of control steps per episode", low=1)
  substeps: int = option(8, "number of physics steps per control step", low=1)
  control: Control = option(
    Control.joint, "controlled quantity: joint targets, or the grasp point by operational-space control"
  )
  joint_step: float = option(0.2, "offset of a joint target from the joint for an action of 1", "rad", low=0)
  osc_step: float = option(0.1, "target offset of the grasp point for an action of 1", "m", low=0)
  osc_turn: float = option(0.5, "rotation of the hand about each axis for an action of 1", "rad", low=0)
  osc_stiffness: float = option(
    150.0, "acceleration of the grasp point per offset, critically damped", "1/s^2", low=0
  )
  osc_posture: float = option(10.0, "null-space stiffness of the joints towards home", "1/s^2", low=0)
  osc_substeps: int = option(4, "number of physics steps per torque update, a divisor of substeps", low=1)
  start_angle: float = option(0.1, "largest joint offset at the start of an episode", "rad", low=0)


class Task(base.Task):
  """Task of an arm with a gripper, in a scene that includes `arm.xml` and has a key frame `home`."""

  robot = base.ASSETS / "arm" / "robot.xml"
  outputs = ("xpos", "xmat", "xquat", "site_xpos", "qM")
  grips = True  # whether the last action opens the gripper; otherwise it keeps its opening at home
  config: Config

  @classmethod
  def scene(cls, config: Config) -> Path | str:
    """Return the MJCF scene, with torque motors instead of joint servos for operational-space control."""
    path = Path(cls.robot)
    if config.control == Control.joint:
      return path
    text = path.read_text().replace('file="arm.xml"', 'file="arm_torque.xml"')
    return text.replace('file="', f'file="{path.parent}/')

  def action_names(self) -> list[str]:
    """Return the names of seven joints or six displacements, and of the gripper."""
    moves = ("x", "y", "z", "turn about x", "turn about y", "turn about z")
    return [*(JOINTS if self.config.control == Control.joint else moves), *["gripper"] * self.grips]

  def setup(self) -> None:
    """Look up joints, links, controls and the grasp point."""
    config = self.config
    if config.control == Control.osc and config.substeps % config.osc_substeps:
      raise ValueError(
        f"osc_substeps={config.osc_substeps} does not divide substeps={config.substeps}: choose a divisor"
      )
    self.angles, self.speeds = self.qpos_of(*JOINTS), self.qvel_of(*JOINTS)
    self.fingers = self.qpos_of(*FINGERS)
    self.links, self.hand = self.body_of(*LINKS), self.model.body_id("hand")
    self.point = self.model.site_id("grasp")
    self.drives, self.gripper = self.ctrl_of(*JOINTS), self.model.actuator_id("opening")
    self.home, home_ctrl = self.key_of("home")  # [nq], [nu]
    self.opening = home_ctrl[self.gripper]  # of a gripper that is not used [m]
    self.max_opening = float(self.model.actuator_ctrlrange[self.gripper, 1])  # [m]
    limits = self.constant(self.model.jnt_range)[[self.model.joint_id(name) for name in JOINTS]]
    self.low, self.high = limits.unbind(1)  # joint ranges [7] [rad]
    reach = [config.osc_step] * 3 + [config.osc_turn] * 3
    self.pull = config.osc_stiffness * self.constant(reach).unsqueeze(1)  # [6, 1] [m/s^2, rad/s^2]

  def arm_at_home(self) -> tuple[Tensor, Tensor]:
    """Return start states qpos [N, nq] and qvel [N, nv]: `home` at rest, with random joint offsets."""
    offset = self.config.start_angle * self.random.uniform("start angle", (7,), -1.0, 1.0)
    qpos = torch.empty_like(self.sim.qpos).copy_(self.home)
    qpos[:, self.angles] = (qpos[:, self.angles] + offset).clamp(self.low, self.high)
    return qpos, torch.zeros_like(self.sim.qvel)

  def control(self) -> None:
    """Set the gripper and, in joint control, the joint targets; `simulate` computes torques."""
    if self.grips:
      self.sim.ctrl[:, self.gripper] = (1.0 + self.action[:, -1]) * (self.max_opening / 2)
    else:
      self.sim.ctrl[:, self.gripper] = self.opening
    if self.config.control == Control.joint:
      target = self.sim.qpos[:, self.angles] + self.config.joint_step * self.action[:, :7]
      self.sim.ctrl[:, self.drives] = target.clamp(self.low, self.high)

  def simulate(self) -> None:
    """Simulate the step with constant targets, or with torques that are updated as the arm moves."""
    if self.config.control == Control.joint:
      super().simulate()
      return
    for _ in range(self.config.substeps // self.config.osc_substeps):
      self.sim.ctrl[:, self.drives] = self.torques().T
      self.advance(self.config.osc_substeps)

  def torques(self) -> Tensor:
    """Return joint torques [7, N] [N m] that move the grasp point by the action and the arm towards home."""
    config, sim = self.config, self.sim
    angles, speeds = sim.qpos[:, self.angles].T, sim.qvel[:, self.speeds].T
    jacobian = self.jacobian()
    velocity = (jacobian * speeds).sum(1)
    acceleration = self.pull * self.action[:, :6].T - 2.0 * sqrt(config.osc_stiffness) * velocity
    away = angles - self.home[self.angles].unsqueeze(1)
    posture = -config.osc_posture * away - 2.0 * sqrt(config.osc_posture) * speeds
    mass = sim.qM[:, self.speeds, self.speeds].permute(1, 2, 0)
    return osc.torques(mass, jacobian, acceleration, posture)

  def jacobian(self) -> Tensor:
    """Return the Jacobian of the grasp point [6, 7, N]; each joint turns about the z axis of its link."""
    axis = self.sim.xmat[:, self.links, 2::3].permute(1, 2, 0)
    anchor = self.sim.xpos[:, self.links].permute(1, 2, 0)
    return osc.jacobian(axis, anchor, self.sim.site_xpos[:, self.point].T)

  def grip_points(self) -> Tensor:
    """Return the positions of the grasp point and of the left and right fingertips [N, 3, 3] [m]."""
    point = self.sim.site_xpos[:, self.point]
    across = self.sim.xmat[:, self.hand, 1::3]  # the direction in which the left finger opens
    left, right = self.sim.qpos[:, self.fingers].unsqueeze(1).unbind(2)
    return torch.stack([point, point + left * across, point - right * across], 1)

  def downward(self) -> Tensor:
    """Return the cosine of the angle of the hand from pointing down [N]."""
    return -self.sim.xmat[:, self.hand, 8]

  def observe_arm(self) -> dict[str, Tensor]:
    """Return the observation blocks [N, ...] of the arm by name."""
    return {
      "angles": self.sim.qpos[:, self.angles],
      "speeds": self.sim.qvel[:, self.speeds],
      "grasp_position": self.sim.site_xpos[:, self.point],
      "grasp_axes": self.sim.xmat[:, self.hand].unflatten(1, (3, 3))[:, :, 1:],
      "opening": self.sim.qpos[:, self.fingers].sum(1),
    }
