"""Lifting a cube to a goal in the air: start, goal, rewards and observation of any arm with a gripper.

The reward for reaching is as in IsaacGymEnvs 1.5.1 (`isaacgymenvs/tasks/franka_cube_stack.py`): it counts the
grasp point and both fingertips.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option

PPO: dict[str, object] = {
  "hidden": [128, 64],
  "minibatches": 8,
  "reference_minibatch": 4096,
  "kl_target": 0.016,
  "log_std_init": -0.7,
  "gamma": 0.95,
  "shared": False,
  "reward_transform": "scale",  # a cube at its goal is worth ten steps of reaching; with symlog, only four
  "reward_scale": 0.1,
}


@dataclass
class Config(base.Config):
  """Settings of cube, goal and rewards."""

  cube_side: float = option(0.15, "largest start offset of the cube along y", "m", low=0)
  cube_ahead: float = option(0.1, "largest start offset of the cube along x", "m", low=0)
  goal_low: float = option(0.1, "smallest height of a goal above the cube's start", "m", low=0.01)
  goal_high: float = option(0.25, "largest height of a goal above the cube's start", "m", low=0.01)
  success_distance: float = option(
    0.03, "distance of the cube from its goal below which it is a success", "m", low=0
  )
  reward_reach: float = option(1.0, "weight of 1 - tanh(mean distance of grasp point and fingertips / 0.1 m)")
  reward_goal: float = option(
    10.0, "weight of a cube at its goal below a hand that points down; less beside, below or with a tilt"
  )
  reward_action: float = option(-0.01, "weight of the penalty on the sum of squared actions")


class Task(base.Task, ABC):
  """Task of an arm over a table with a body `cube`; a subclass moves the arm."""

  point: int  # site between the fingertips
  home: Tensor  # [nq]
  near = 0.1  # width of the reward for reaching; the reward for the goal is twice as wide [m]
  top = 0.0  # height of the table [m]
  config: Config

  @abstractmethod
  def grip_points(self) -> Tensor:
    """Return the positions of the grasp point and of both fingertips [N, 3, 3] [m]."""

  @abstractmethod
  def downward(self) -> Tensor:
    """Return the cosine of the angle of the hand from pointing down [N]."""

  @abstractmethod
  def arm_at_home(self) -> tuple[Tensor, Tensor]:
    """Return start states qpos [N, nq] and qvel [N, nv] of the arm."""

  @abstractmethod
  def observe_arm(self) -> dict[str, Tensor]:
    """Return the observation blocks [N, ...] of the arm by name."""

  def set_cube(self) -> None:
    """Look up the cube; create buffers for its goal and its distance from there."""
    config = self.config
    self.cube, self.cube_qpos = self.model.body_id("cube"), self.qpos_of("cube")
    x, y, self.rest = self.model.body_pos[self.cube].tolist()  # the cube's start without offsets [m]
    low = x - config.cube_ahead, y - config.cube_side, self.rest + config.goal_low
    high = x + config.cube_ahead, y + config.cube_side, self.rest + config.goal_high
    self.corner, self.far_corner = self.constant(low), self.constant(high)  # [3] [m]
    self.goal_position = self.buffer(3)  # [m]
    self.commands = base.Commands.position(self.goal_position, low, high)
    self.distance = self.buffer()  # of the cube from its goal [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start near home with the cube at a random pose on the table, and a random goal."""
    qpos, qvel = self.arm_at_home()
    ahead, side, turn = self.random.uniform("cube", (3,), -1.0, 1.0).unbind(1)
    half_turn = torch.pi / 8 * turn  # a cube is symmetric under quarter turns
    zero = torch.zeros_like(turn)
    offset = [self.config.cube_ahead * ahead, self.config.cube_side * side, zero]
    rotation = [half_turn.cos(), zero, zero, half_turn.sin()]
    position = self.home[self.cube_qpos][:3] + torch.stack(offset, 1)
    qpos[:, self.cube_qpos] = torch.cat([position, torch.stack(rotation, 1)], 1)
    goal = torch.lerp(self.corner, self.far_corner, self.random.uniform("goal position", (3,)))
    return {"qpos": qpos, "qvel": qvel, "goal_position": goal}

  def update(self) -> None:
    """Compute the distance of the cube from its goal."""
    self.distance.copy_((self.goal_position - self.sim.xpos[:, self.cube]).norm(dim=1))

  def reward(self) -> dict[str, Tensor]:
    """Reward reaching the cube and bringing it to its goal; penalise motion."""
    cube = self.sim.xpos[:, self.cube]
    reach = (self.grip_points() - cube.unsqueeze(1)).norm(dim=2).mean(1)
    aside, upward = (cube - self.goal_position)[:, :2].norm(dim=1), (cube - self.goal_position)[:, 2].abs()
    raised = (1.0 - upward / (self.goal_position[:, 2] - self.rest)).clamp(min=0.0)
    return {
      "reach": 1.0 - (reach / self.near).tanh(),
      # A product: the sum would pay for a cube that is pushed to below its goal, and for a hand that tilts.
      "goal": raised * (1.0 - (aside / (2 * self.near)).tanh()) * self.downward().clamp(min=0.0),
      "action": self.action.square().sum(1),
    }

  def success(self) -> Tensor:
    """Succeed if the cube is at its goal."""
    return self.distance < self.config.success_distance

  def terminated(self) -> Tensor:
    """Fail if the cube falls off the table."""
    return self.sim.xpos[:, self.cube, 2] < self.top

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the arm, the cube, and the offsets of the cube and of its goal from the grasp point."""
    cube, point = self.sim.xpos[:, self.cube], self.sim.site_xpos[:, self.point]
    return {
      "policy": {
        **self.observe_arm(),
        "cube_position": cube,
        "cube_axes": self.sim.xmat[:, self.cube].unflatten(1, (3, 3))[:, :, 1:],
        "cube_offset": cube - point,
        "goal_offset": self.goal_position - point,
      }
    }

  def metrics(self) -> dict[str, Tensor]:
    """Return the distance of the cube from its goal [m]."""
    return {"distance": self.distance}
