"""Cube lift: an arm grasps a cube on a table, lifts it and holds it there.

The reward is structured as in IsaacGymEnvs 1.5.1 (`isaacgymenvs/tasks/franka_cube_stack.py`): first reach
with the grasp point and both fingertips, then lift.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import arm

TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 20_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64],
  "minibatches": 8,
  "reference_minibatch": 4096,
  "kl_target": 0.016,
  "log_std_init": -0.7,
  "gamma": 0.95,
  "shared": False,
  "reward_transform": "scale",  # a lifted cube is worth ten steps of reaching; with symlog, only four
  "reward_scale": 0.1,
}


@dataclass
class Config(arm.Config):
  """Settings of cube lift."""

  control: arm.Control = option(
    arm.Control.osc, "controlled quantity: joint targets, or the grasp point by operational-space control"
  )
  cube_side: float = option(0.15, "largest start offset of the cube along y", "m", low=0)
  cube_ahead: float = option(0.1, "largest start offset of the cube along x", "m", low=0)
  lift_height: float = option(
    0.15, "height above the start that earns the full lifting reward", "m", low=0.01
  )
  success_height: float = option(0.1, "height above the start beyond which it is a success", "m", low=0)
  reward_reach: float = option(1.0, "weight of 1 - tanh(mean distance of grasp point and fingertips / 0.1 m)")
  reward_lift: float = option(5.0, "weight of the cube height above its start, divided by lift_height")
  reward_lifted: float = option(5.0, "weight of a cube above success_height")
  reward_action: float = option(-0.01, "weight of the penalty on the sum of squared actions")


class Task(arm.Task):
  """Cube lift task; actions are displacements of the grasp point or of joints, and the gripper opening."""

  robot = base.ASSETS / "arm" / "table.xml"
  config: Config

  def setup(self) -> None:
    """Look up the cube."""
    super().setup()
    self.cube, self.cube_qpos = self.model.body_id("cube"), self.qpos_of("cube")
    self.rest = self.home[self.cube_qpos][2]  # height of a cube that lies on the table [m]
    self.height = self.buffer()  # height of the cube above its start [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start near home with the cube at a random pose on the table."""
    qpos, qvel = self.arm_at_home()
    ahead, side, turn = self.random.uniform("cube", (3,), -1.0, 1.0).unbind(1)
    half_turn = torch.pi / 8 * turn  # a cube is symmetric under quarter turns
    zero = torch.zeros_like(turn)
    offset = [self.config.cube_ahead * ahead, self.config.cube_side * side, zero]
    rotation = [half_turn.cos(), zero, zero, half_turn.sin()]
    position = self.home[self.cube_qpos][:3] + torch.stack(offset, 1)
    qpos[:, self.cube_qpos] = torch.cat([position, torch.stack(rotation, 1)], 1)
    return {"qpos": qpos, "qvel": qvel}

  def update(self) -> None:
    """Compute the height of the cube."""
    self.height.copy_(self.sim.xpos[:, self.cube, 2] - self.rest)

  def reward(self) -> dict[str, Tensor]:
    """Reward reaching the cube and lifting it; penalise motion."""
    points = self.grip_points() - self.sim.xpos[:, self.cube].unsqueeze(1)
    distance = points.square().sum(2).sqrt().mean(1)
    return {
      "reach": 1.0 - (distance / 0.1).tanh(),
      "lift": (self.height / self.config.lift_height).clamp(0.0, 1.0),
      "lifted": self.success(),
      "action": self.action.square().sum(1),
    }

  def success(self) -> Tensor:
    """Succeed if the cube is above `success_height`."""
    return self.height > self.config.success_height

  def terminated(self) -> Tensor:
    """Fail if the cube falls off the table."""
    return self.height < -0.1

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the arm, the cube, and the offset of the cube from the grasp point."""
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
    """Return the height of the cube [m]."""
    return {"height": self.height}
