"""Cube stack: the arm puts one cube on another, larger one, and lets go of it.

Cubes, reward and success follow IsaacGymEnvs 1.5.1 (`isaacgymenvs/tasks/franka_cube_stack.py`,
`isaacgymenvs/cfg/task/FrankaCubeStack.yaml`), but for four things: an episode goes on when the cube lies
where it should, and pays for every step that it stays there (ended at once, a policy earns more by holding
the cube above its place); the nearness to the place falls off by 5/m rather than 10/m, and tells the way from
farther; a cube that falls off the table ends an episode; and letting go is paid for as it begins, which noise
alone hardly finds.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import arm, quat, reward

CUBES = ("cube_a", "cube_b")  # the one to be moved, the one to put it on
TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 100_000_000}
PPO: dict[str, object] = {
  "minibatches": 4,
  "gamma": 0.95,
  "hidden": [128, 128],
  "log_std_init": -0.7,
  "reward_transform": "scale",  # a cube in its place is worth four that are held above it
  "reward_scale": 0.1,
}


@dataclass
class Config(arm.Config):
  """Settings of the cube stack."""

  control: arm.Control = option(arm.Control.osc, "what actions move: the joints' targets, the grasp point")
  osc_turn: float = option(0.3, "largest angle about each axis to which it is pulled", "rad", low=0)
  start_spread: float = option(0.15, "largest offset of a cube at the start, along x and y", "m", low=0)
  start_gap: float = option(0.12, "least distance between the cubes at the start, along y", "m", low=0)
  start_turn: float = option(0.785, "largest angle by which a cube is turned at the start", "rad", low=0)
  lift_height: float = option(0.04, "height of the cube above its edge from which it counts as lifted", "m")
  stack_tolerance: float = option(0.02, "largest distance from its place, aside and upward", "m", low=0)
  release_distance: float = option(0.04, "least distance of the grasp point from a cube let go", "m", low=0)
  align_slope: float = option(5.0, "by which the nearness of the cube to its place falls off", "1/m", low=0)
  reward_reach: float = option(0.1, "weight of the fingers' nearness to the cube, or its to its place")
  reward_lifted: float = option(1.5, "weight of one while the cube is lifted")
  reward_aligned: float = option(2.0, "weight of the lifted cube's nearness to its place")
  reward_released: float = option(
    4.0,
    "weight of how far the gripper is told to open and is away, in the mean, while the cube is in place",
  )
  reward_stacked: float = option(16.0, "reward of a step with the cube in place, instead of all others")


class Task(arm.Task):
  """The arm's joints, or its grasp point, and the gripper are the action."""

  robot = base.ASSETS / "arm" / "stack.xml"
  config: Config

  def setup(self) -> None:
    """Find the cubes and where the one belongs on the other."""
    super().setup()
    self.cubes = self.qpos_of(*CUBES)
    halves = self.constant(self.model.geom_size)[self.geom_of(*CUBES), 2]  # [2] [m]
    self.lifted_at = 2.0 * halves[0] + self.config.lift_height  # height of the centre [m]
    self.above = self.constant([0.0, 0.0, 1.0]) * halves.sum()  # of the centres in place [3] [m]
    self.order = self.constant([-1.0, 1.0])
    self.released = self.buffer()  # how far a cube in its place is let go, 0 ... 1
    self.stacked = self.buffer(dtype=torch.bool)  # whether the cube lies in its place, let go

  def initial_state(self) -> dict[str, Tensor]:
    """Put the cubes on the table, turned, apart along y in either order."""
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
    """Note where the cube lies in its place, and how far it is let go."""
    config, (point, cube, place) = self.config, self.positions()
    aside, upward = (cube - place)[:, :2].norm(dim=1), (cube - place)[:, 2].abs()
    in_place = (aside < config.stack_tolerance) & (upward < config.stack_tolerance)
    away = (cube - point).norm(dim=1) / config.release_distance
    opening = (
      self.sim.ctrl[:, self.gripper] / self.max_opening
    )  # asked for: a cube between them hides the rest
    self.released.copy_(in_place * (away.clamp(max=1.0) + opening) / 2)
    self.stacked.copy_(in_place & (away > 1.0))

  def reward(self) -> dict[str, Tensor]:
    """Pay for nearing and lifting the cube, for bringing it to its place, and most for leaving it."""
    _, cube, place = self.positions()
    near = 1.0 - (10.0 * (self.grip_points() - cube.unsqueeze(1)).norm(dim=2).mean(1)).tanh()
    lifted = cube[:, 2] > self.lifted_at
    aligned = lifted * (1.0 - (self.config.align_slope * (cube - place).norm(dim=1)).tanh())
    terms = {
      "reach": torch.maximum(near, aligned),
      "lifted": lifted,
      "aligned": aligned,
      "released": self.released,
    }
    return reward.replace(terms, self.stacked, "stacked")

  def terminated(self) -> Tensor:
    """Fail when a cube has fallen off the table."""
    return (self.poses()[:, :, 2] < 0.0).any(1)

  def success(self) -> Tensor:
    """Succeed with the cube in its place."""
    return self.stacked

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show the arm, the cube from the grasp point, its axes, and its place from the cube."""
    point, cube, place = self.positions()
    axes = quat.to_matrix(self.poses()[:, 0, 3:])[:, :, 1:]
    seen = {"to_cube": cube - point, "cube_axes": axes, "to_place": place - cube}
    return {"policy": self.observe_arm() | seen}

  def metrics(self) -> dict[str, Tensor]:
    """Log whether the cube is lifted, and how far it is from its place [m]."""
    _, cube, place = self.positions()
    return {"lifted": cube[:, 2] > self.lifted_at, "place_distance": (cube - place).norm(dim=1)}

  def poses(self) -> Tensor:
    """Return both cubes' positions and quaternions [N, 2, 7]."""
    return self.sim.qpos[:, self.cubes].unflatten(1, (2, 7))

  def positions(self) -> tuple[Tensor, Tensor, Tensor]:
    """Return where the grasp point, the cube and its place are [N, 3] [m]."""
    cube, other = self.poses()[:, :, :3].unbind(1)
    return self.sim.site_xpos[:, self.point], cube, other + self.above
