"""Lift: any arm with a gripper, from an MJCF or URDF file, brings a cube from a table to a goal in the air.

Gripper, cube, table and goals are found from the file (`physics/robot/`). The rewards of our own arm are
scaled to the arm's reach (`tasks/shared/lifting.py`). Actions are velocities of the grasp point, which damped
least squares turn into speeds of the servos' targets (Wampler 1986), so that all arms act alike; the hand
points down by itself.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import lifting, osc, robot_file
from tasks.shared.jacobian import Jacobian
from tasks.shared.similarity import adapted

TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 10_000_000}
PPO = lifting.PPO

OURS = 0.95  # reach of our arm, to which lengths of rewards belong [m]
FOUND = ("cube_side", "cube_ahead", "goal_low", "goal_high", "success_distance")  # if they are not given
LOWEST, AT_GOAL = 0.4, 0.6  # lowest goal over the highest; most of success_distance over the cube's side
# Weights of a radian of tilt and of a turn about the vertical, which not all arms can choose, over a motion
# as long as the reach; damping of the least squares; return from a tilt [1/s].
TILT, TURN, DAMPING, STRAIGHTEN = 0.3, 0.05, 1e-4, 5.0


@adapted(FOUND)
@dataclass
class Config(robot_file.ArmConfig, lifting.Config):
  """Settings of an arm that lifts; those that are null follow its reach and its gripper."""

  episode_steps: int = option(100, "maximum number of control steps per episode", low=1)
  control_seconds: float = option(0.04, "duration of a control step", "s", low=0.001, high=0.1)
  substeps: int = option(8, "number of physics steps per control step", low=1)
  cube_size: float | None = option(
    None, "side of the cube; null: 0.6 of the gripper's width, at most 5 cm", "m", low=0.005
  )
  hand_speed: float = option(0.5, "speed of the hand for an action of 1, over the reach", "1/s", low=0)
  hand_turn: float = option(2.0, "the same of its turn about the vertical", "rad/s", low=0)
  lead: float = option(0.2, "largest offset of a joint's target from the joint", "rad", low=0)
  start_angle: float = option(
    0.02, "largest joint offset at the start, over the joint's range", low=0, high=1
  )
  start_held: float = option(
    0.2, "share of training's episodes that start with the cube in the hand", low=0, high=1
  )


class Task(lifting.Task):
  """Lift task of any arm; actions are velocities of the grasp point, its turn, and the gripper opening."""

  outputs = ("site_xpos", "site_xmat", "xpos", "xmat")
  found: robot_file.Arm
  config: Config

  @classmethod
  def scene(cls, config: Any) -> Any:
    """Return the arm above a cube on the floor or on a table, an MjSpec."""
    return robot_file.lifter(config)[3]

  def action_names(self) -> list[str]:
    """Return the names of velocities and of the gripper."""
    return ["x", "y", "z", "turn", "gripper"]

  def setup(self) -> None:
    """Take the parts that were found, and where cube and goals are."""
    self.found, gripper, table, _ = robot_file.lifter(self.config)
    arm = self.found
    ahead, aside = table.half.tolist()
    lowest = LOWEST * table.highest
    sizes = aside, ahead, lowest, table.highest, min(AT_GOAL * gripper.side, lowest / 2)
    null = {name: size for name, size in zip(FOUND, sizes, strict=True) if getattr(self.config, name) is None}
    self.config = replace(self.config, **null)
    if self.training:
      robot_file.announce(arm)
    # Between a tenth of the reach, over which the hand comes, and two sides of the cube, which it encloses.
    self.near, self.top = math.sqrt(0.1 * arm.reach / OURS * 2 * gripper.side), float(table.middle[2])
    self.columns, self.dofs = self.joints_of(*arm.joints)
    self.point, self.tips = self.model.site_id(robot_file.GRASP), self.site_of(*robot_file.GRIPS)
    self.home, _ = self.key_of("home")  # [nq]
    self.pull = self.constant(arm.stance - arm.angles)  # offsets of the targets that hold home [joints]
    self.low, self.high = self.constant(arm.limits).unbind(1)  # of the joints [joints] [rad, m]
    self.opened, self.closed = self.constant(gripper.opened), self.constant(gripper.closed)
    self.fingers, _ = self.joints_of(*gripper.grip)
    self.grip, self.hand = self.constant([*gripper.grip.values()]), self.constant(table.hand)
    self.jacobian = Jacobian(self, arm.joints, robot_file.GRASP)
    self.weights = self.constant([*[1 / arm.reach] * 3, TILT, TILT, TURN]).unsqueeze(1)  # [6, 1]
    self.aim = self.buffer(len(arm.joints))  # targets of the servos [rad, m]
    self.set_cube()

  def arm_at_home(self) -> tuple[Tensor, Tensor]:
    """Return start states qpos [N, nq] and qvel [N, nv]: `home` at rest, with random joint offsets."""
    width = (len(self.found.joints),)
    offset = self.config.start_angle / 2 * self.random.uniform("start angle", width, -1.0, 1.0)
    qpos = torch.empty_like(self.sim.qpos).copy_(self.home)
    angles = qpos[:, self.columns] + offset * (self.high - self.low)
    qpos[:, self.columns] = angles.clamp(self.low, self.high)
    return qpos, torch.zeros_like(self.sim.qvel)

  def initial_state(self) -> dict[str, Tensor]:
    """Start near home; in training now and then at home with the cube in the hand."""
    start = super().initial_state()
    if self.training:
      held = self.home.expand_as(self.sim.qpos).clone()
      held[:, self.fingers], held[:, self.cube_qpos] = self.grip, self.hand
      draw = self.random.uniform("held", ()).unsqueeze(1)
      start["qpos"] = torch.where(draw < self.config.start_held, held, start["qpos"])
    return {**start, "aim": start["qpos"][:, self.columns] + self.pull}

  def control(self) -> None:
    """Move the targets of the servos such that the hand moves as it should; open or close the gripper."""
    angles, lead = self.sim.qpos[:, self.columns] + self.pull, self.config.lead
    aim = (self.aim + self.dt * self.speeds()).clamp(self.low, self.high)
    self.aim.copy_(aim.clamp(angles - lead, angles + lead))
    opening = (1.0 + self.action[:, 4:]) / 2
    self.sim.ctrl.copy_(torch.cat([self.aim, torch.lerp(self.closed, self.opened, opening)], 1))

  def speeds(self) -> Tensor:
    """Return the speeds of the joints [N, joints] [rad/s, m/s] for the action, with the hand kept upright."""
    config = self.config
    x, y, _ = self.sim.site_xmat[:, self.point, 2::3].unbind(1)  # of the direction in which the hand points
    linear = config.hand_speed * self.found.reach * self.action[:, :3]
    spin = torch.stack([-STRAIGHTEN * y, STRAIGHTEN * x, config.hand_turn * self.action[:, 3]], 1)
    motion = self.weights * torch.cat([linear, spin], 1).T  # [6, N]
    full = torch.cat([self.jacobian.linear(), self.jacobian.angular()], 2)  # [N, joints, 6]
    jacobian = self.weights.unsqueeze(1) * full.permute(2, 1, 0)  # [6, joints, N]
    square = (jacobian.unsqueeze(1) * jacobian.unsqueeze(0)).sum(2)
    square += DAMPING * torch.eye(6, device=self.device).unsqueeze(2)
    top = torch.cat([square, motion.unsqueeze(1)], 1)
    bottom = torch.cat([-jacobian, torch.zeros_like(jacobian[:1])]).transpose(0, 1)
    return osc.eliminate(torch.cat([top, bottom]), 6).squeeze(1).T

  def grip_points(self) -> Tensor:
    """Return the positions of the grasp point and of both fingertips [N, 3, 3] [m]."""
    tips = self.sim.site_xpos[:, self.tips]
    return torch.cat([tips.mean(1, keepdim=True), tips], 1)

  def downward(self) -> Tensor:
    """Return the cosine of the angle of the hand from pointing down [N]."""
    return -self.sim.site_xmat[:, self.point, 8]

  def observe_arm(self) -> dict[str, Tensor]:
    """Return the observation blocks [N, ...] of the arm by name."""
    angles, tips = self.sim.qpos[:, self.columns], self.sim.site_xpos[:, self.tips]
    return {
      "angles": angles,
      "speeds": self.sim.qvel[:, self.dofs],
      "lag": self.aim - angles,
      "grasp_position": self.sim.site_xpos[:, self.point],
      "grasp_axes": self.sim.site_xmat[:, self.point].unflatten(1, (3, 3))[:, :, 1:],
      "opening": (tips[:, 0] - tips[:, 1]).norm(dim=1, keepdim=True),
    }
