"""Cube lift: grasp a cube that lies somewhere on a table, lift it, and hold it there.

The reward has the shape of IsaacGymEnvs 1.5.1 (`isaacgymenvs/tasks/franka_cube_stack.py`): reach with the
grasp point and both fingertips, then lift.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import arm

TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 20_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64],
  "minibatches": 4,
  "reference_minibatch": 4096,
  "log_std_init": -0.7,
  "gamma": 0.95,
  "shared": False,
  "reward_transform": "scale",  # a lifted cube is worth ten steps of reaching: symlog would make it four
  "reward_scale": 0.1,
}


@dataclass
class Config(arm.Config):
  """Settings of cube lift."""

  control: arm.Control = option(arm.Control.osc, "what actions move: the joints' targets, the grasp point")
  cube_side: float = option(0.15, "largest distance of the cube's start to the side", "m", low=0)
  cube_ahead: float = option(0.1, "largest distance of the cube's start before or behind home", "m", low=0)
  lift_height: float = option(0.15, "height above the start at which lifting is paid in full", "m", low=0.01)
  success_height: float = option(0.1, "smallest height above the start of a success", "m", low=0)
  reward_reach: float = option(1.0, "weight of 1 - tanh(mean distance of grasp point and fingertips / 0.1 m)")
  reward_lift: float = option(5.0, "weight of the cube's height above its start, 1 at lift_height")
  reward_lifted: float = option(5.0, "weight of a cube at the height of a success")
  reward_action: float = option(-0.01, "weight of the summed squared actions")


class Task(arm.Task):
  """Displacements of the grasp point, or of joints, and the gripper's opening are the action."""

  robot = base.ASSETS / "arm" / "table.xml"
  config: Config

  def setup(self) -> None:
    """Find the cube."""
    super().setup()
    self.cube, self.cube_qpos = self.model.body_id("cube"), self.qpos_of("cube")
    self.rest = self.home[self.cube_qpos][2]  # height of a cube that lies on the table [m]
    self.height = self.buffer()  # of the cube above its start [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start near home, the cube somewhere on the table."""
    qpos, qvel = self.arm_at_home()
    ahead, side, turn = self.random.uniform("cube", (3,), -1.0, 1.0).unbind(1)
    half_turn = torch.pi / 8 * turn  # a cube looks the same after a quarter of a turn
    zero = torch.zeros_like(turn)
    offset = [self.config.cube_ahead * ahead, self.config.cube_side * side, zero]
    rotation = [half_turn.cos(), zero, zero, half_turn.sin()]
    place = self.home[self.cube_qpos][:3] + torch.stack(offset, 1)
    qpos[:, self.cube_qpos] = torch.cat([place, torch.stack(rotation, 1)], 1)
    return {"qpos": qpos, "qvel": qvel}

  def update(self) -> None:
    """Measure how high the cube is."""
    self.height.copy_(self.sim.xpos[:, self.cube, 2] - self.rest)

  def reward(self) -> dict[str, Tensor]:
    """Pay for nearness, more for height; charge for motion."""
    points = self.grip_points() - self.sim.xpos[:, self.cube].unsqueeze(1)
    distance = points.square().sum(2).sqrt().mean(1)
    return {
      "reach": 1.0 - (distance / 0.1).tanh(),
      "lift": (self.height / self.config.lift_height).clamp(0.0, 1.0),
      "lifted": self.success(),
      "action": self.action.square().sum(1),
    }

  def success(self) -> Tensor:
    """Succeed with the cube in the air."""
    return self.height > self.config.success_height

  def terminated(self) -> Tensor:
    """Fail when the cube falls off the table."""
    return self.height < -0.1

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show the arm, the cube, and where the cube is from the grasp point."""
    cube = self.sim.xpos[:, self.cube]
    return {
      "policy": {
        **self.observe_arm(),
        "cube_position": cube,
        "cube_axes": self.sim.xmat[:, self.cube].unflatten(1, (3, 3))[:, :, 1:],
        "cube_offset": cube - self.sim.site_xpos[:, self.point],
      }
    }

  def metrics(self) -> dict[str, Tensor]:
    """Log the height of the cube [m]."""
    return {"height": self.height}
