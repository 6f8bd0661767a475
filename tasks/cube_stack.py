"""Cube stack: an arm puts one cube on a larger one and releases it.

Cubes, reward and success follow IsaacGymEnvs 1.5.1 (`isaacgymenvs/tasks/franka_cube_stack.py`,
`isaacgymenvs/cfg/task/FrankaCubeStack.yaml`), with these differences. The episode continues after success,
with a reward for every step in which the cube stays stacked; if success ended it, a policy would earn more by
holding the cube above its goal. The goal reward falls off by 5/m rather than 10/m, and so guides from farther
away. A cube that falls off the table ends the episode. Reaching weighs 0.5 rather than 0.1: otherwise a hand
that missed the cube stays beside it. Lifting and releasing the cube are rewarded gradually, because
exploration alone rarely finds them. The height is the lowest corner's: otherwise the hand learns to tip
the cube. A stacked cube earns the more, the closer it is to its goal. A hand that points down is rewarded,
and one that turns to the side ends the episode: otherwise exploration turns it over, and it grasps the cube
from a side on which it cannot put it down.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import arm, quat, reward

CUBES = ("cube_a", "cube_b")  # the cube to move, and the cube below it
TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 100_000_000}
PPO: dict[str, object] = {
  "minibatches": 4,
  "gamma": 0.95,
  "hidden": [128, 128],
  "log_std_init": -0.7,
  "reward_transform": "scale",  # a stacked cube is worth four times one that is held above its goal
  "reward_scale": 0.1,
}


@dataclass
class Config(arm.Config):
  """Settings of cube stack."""

  control: arm.Control = option(
    arm.Control.osc, "controlled quantity: joint targets, or the grasp point by operational-space control"
  )
  osc_turn: float = option(0.3, "rotation of the hand about each axis for an action of 1", "rad", low=0)
  start_spread: float = option(0.15, "largest start offset of a cube along x and y", "m", low=0)
  start_gap: float = option(0.12, "smallest start distance between the cubes along y", "m", low=0)
  start_turn: float = option(0.785, "largest start rotation of a cube", "rad", low=0)
  lift_height: float = option(0.04, "height of the centre, less the cube side, above which it is lifted", "m")
  stack_tolerance: float = option(
    0.02, "largest horizontal and vertical distance of a stacked cube from its goal", "m", low=0
  )
  release_distance: float = option(
    0.04, "smallest distance of the grasp point from a released cube", "m", low=0
  )
  align_slope: float = option(5.0, "slope of the goal reward over the distance of the cube", "1/m", low=0)
  tilt_max: float = option(
    0.5, "angle of the hand from pointing down beyond which the episode ends", "rad", low=0, high=math.pi
  )
  reward_reach: float = option(0.5, "weight of the larger of the reaching and the goal reward")
  reward_down: float = option(0.2, "weight of the direction of the hand: 1 if it points down, 0 if up")
  reward_lift: float = option(
    1.5, "weight of the height of the lowest corner of the cube, 1 where the cube counts as lifted"
  )
  reward_aligned: float = option(2.0, "weight of the closeness of the cube to its goal, times its height")
  reward_released: float = option(
    4.0,
    "weight of the mean of commanded gripper opening and gripper distance while the cube is at its goal",
  )
  reward_stacked: float = option(
    24.0, "reward of a step with a cube stacked exactly, replacing all other terms; half at the tolerance"
  )


class Task(arm.Task):
  """Cube stack task; actions are displacements of the grasp point or of joints, and the gripper opening."""

  robot = base.ASSETS / "arm" / "stack.xml"
  config: Config

  def setup(self) -> None:
    """Look up the cubes and compute the goal offset of the upper cube."""
    super().setup()
    self.cubes = self.qpos_of(*CUBES)
    halves = self.constant(self.model.geom_size)[self.geom_of(*CUBES), 2]  # [2] [m]
    self.rest = halves[0]  # height of the centre of a cube on the table [m]
    self.lifted_at = 2.0 * self.rest + self.config.lift_height  # centre height of a lifted cube [m]
    self.above = self.constant([0.0, 0.0, 1.0]) * halves.sum()  # offset between stacked centres [3] [m]
    self.order = self.constant([-1.0, 1.0])
    self.alike = self.constant(quat.CUBE_SYMMETRY)  # symmetry rotations [24, 4]
    self.released = self.buffer()  # degree to which a cube at its goal is released, 0 ... 1
    self.stacked = self.buffer(dtype=torch.bool)  # whether the cube is at its goal and released

  def initial_state(self) -> dict[str, Tensor]:
    """Put the cubes on the table, rotated at random, with a gap along y, in random order."""
    spread, gap = self.config.start_spread, self.config.start_gap
    qpos, qvel = self.arm_at_home()
    x, y, turn = self.random.uniform("cubes", (3, 2), -1.0, 1.0).unbind(1)
    cubes = qpos[:, self.cubes].unflatten(1, (2, 7))
    cubes[:, :, 0] += spread * x
    side = torch.where(y[:, :1] < y[:, 1:], self.order, -self.order)
    cubes[:, :, 1] = (spread - gap / 2) * y + gap / 2 * side
    half = self.config.start_turn / 2 * turn
    cubes[:, :, 3], cubes[:, :, 6] = half.cos(), half.sin()
    return {"qpos": qpos, "qvel": qvel}

  def update(self) -> None:
    """Determine where the cube is at its goal, and to what degree it is released."""
    config, (point, cube, goal) = self.config, self.positions()
    aside, upward = (cube - goal)[:, :2].norm(dim=1), (cube - goal)[:, 2].abs()
    at_goal = (aside < config.stack_tolerance) & (upward < config.stack_tolerance)
    away = (cube - point).norm(dim=1) / config.release_distance
    # The commanded opening: the real one does not change while the cube is between the fingers.
    opening = self.sim.ctrl[:, self.gripper] / self.max_opening
    self.released.copy_(at_goal * (away.clamp(max=1.0) + opening) / 2)
    self.stacked.copy_(at_goal & (away > 1.0))

  def reward(self) -> dict[str, Tensor]:
    """Reward reaching from above, lifting and aligning the cube, and most of all releasing it at its goal."""
    _, cube, goal = self.positions()
    offset = cube - goal
    near = 1.0 - (10.0 * (self.grip_points() - cube.unsqueeze(1)).norm(dim=2).mean(1)).tanh()
    lift = (self.clearance() / (self.lifted_at - self.rest)).clamp(0.0, 1.0)
    aligned = lift * (1.0 - (self.config.align_slope * offset.norm(dim=1)).tanh())
    terms = {
      "reach": torch.maximum(near, aligned),
      "down": (1.0 + self.downward()) / 2,
      "lift": lift,
      "aligned": aligned,
      "released": self.released,
    }
    # Half at the tolerance: the smallest value of a stacked cube.
    precision = 1.0 - offset[:, :2].norm(dim=1) / (2.0 * self.config.stack_tolerance)
    return reward.replace(terms, self.stacked, "stacked", precision)

  def terminated(self) -> Tensor:
    """Fail if a cube has fallen off the table, or the hand has turned to the side."""
    fallen = (self.poses()[:, :, 2] < 0.0).any(1)
    return fallen | (self.downward() < math.cos(self.config.tilt_max))

  def success(self) -> Tensor:
    """Succeed if the cube is at its goal and released."""
    return self.stacked

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the arm, the offset of the cube from the grasp point, its axes, and its offset to the goal."""
    point, cube, goal = self.positions()
    axes = quat.to_matrix(quat.smallest_alike(self.poses()[:, 0, 3:], self.alike))[:, :, 1:]
    seen = {"to_cube": cube - point, "cube_axes": axes, "to_place": goal - cube}
    return {"policy": self.observe_arm() | seen}

  def metrics(self) -> dict[str, Tensor]:
    """Return whether the cube is lifted, and its distance from the goal [m]."""
    _, cube, goal = self.positions()
    return {"lifted": cube[:, 2] > self.lifted_at, "place_distance": (cube - goal).norm(dim=1)}

  def goals(self) -> Sequence[base.Goal]:
    """Return the place of the cube on the other, turned as the other."""
    return [base.Goal(self.positions()[2], quat.to_matrix(self.poses()[:, 1, 3:]), CUBES[0])]

  def clearance(self) -> Tensor:
    """Return the height of the lowest corner of the cube above the table [N] [m]."""
    upward = quat.to_matrix(self.poses()[:, 0, 3:])[:, 2]  # components of the axes of the cube [N, 3]
    return self.poses()[:, 0, 2] - self.rest * upward.abs().sum(1)

  def poses(self) -> Tensor:
    """Return positions [m] and quaternions of both cubes [N, 2, 7]."""
    return self.sim.qpos[:, self.cubes].unflatten(1, (2, 7))

  def positions(self) -> tuple[Tensor, Tensor, Tensor]:
    """Return the positions of the grasp point, of the cube and of its goal, [N, 3] each [m]."""
    cube, other = self.poses()[:, :, :3].unbind(1)
    return self.sim.site_xpos[:, self.point], cube, other + self.above
