"""Arm reach: a seven-joint arm moves its grasp point to a target pose and holds it there.

Goal positions lie in a box in front of the arm. In goal orientations the fingers point down, with a random
tilt and a random turn. All goals are reachable.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import arm, quat

TRAIN: dict[str, object] = {"num_envs": 512, "max_steps": 4_000_000}
PPO: dict[str, object] = {
  "hidden": [128, 64],
  "epochs": 2,
  "minibatches": 4,
  "kl_target": 0.016,
  "reference_minibatch": 4096,
  "gamma": 0.95,  # reaching takes 20 steps; with 0.99, precision took three times as many samples
  "shared": False,  # with a shared network, an error of 0.15 rad remains
}


@dataclass
class Config(arm.Config):
  """Settings of arm reach. The best return is nearly `episode_steps`."""

  goal_near: float = option(0.35, "smallest distance of a goal in front of the arm base", "m")
  goal_far: float = option(0.6, "largest distance of a goal in front of the arm base", "m")
  goal_side: float = option(0.3, "largest sideways distance of a goal", "m", low=0)
  goal_low: float = option(0.1, "smallest height of a goal", "m")
  goal_high: float = option(0.5, "largest height of a goal", "m")
  goal_tilt: float = option(0.6, "largest angle between the fingers and the vertical", "rad", low=0)
  goal_turn: float = option(1.2, "largest rotation of the hand about the vertical", "rad", low=0)
  success_distance: float = option(
    0.02, "distance from the goal below which the pose is a success", "m", low=0
  )
  success_angle: float = option(0.2, "angle from the goal below which the pose is a success", "rad", low=0)
  reward_distance: float = option(-1.0, "weight of the penalty on the distance from the goal", "1/m")
  reward_angle: float = option(-0.2, "weight of the penalty on the angle from the goal", "1/rad")
  reward_precise: float = option(1.0, "weight of (1 - tanh(distance / 0.1 m)) (1 - tanh(angle / 0.5 rad))")
  reward_action: float = option(-0.01, "weight of the penalty on the sum of squared actions")


class Task(arm.Task):
  """Arm reach task with 7 joint actions or 6 displacements of the grasp point; the gripper does not move."""

  grips = False
  config: Config

  def setup(self) -> None:
    """Create buffers for the goal and for the distance from it."""
    super().setup()
    config = self.config
    low = config.goal_near, -config.goal_side, config.goal_low
    high = config.goal_far, config.goal_side, config.goal_high
    self.corner, self.far_corner = self.constant(low), self.constant(high)  # [3] [m]
    self.goal_position = self.buffer(3)  # [m]
    self.commands = base.Commands.position(self.goal_position, low, high)
    self.goal_rotation = self.buffer(4)  # goal quaternion of the hand
    self.distance = self.buffer()  # between grasp point and goal [m]
    self.angle = self.buffer()  # between hand and goal [rad]

  def initial_state(self) -> dict[str, Tensor]:
    """Start near home with a random goal."""
    qpos, qvel = self.arm_at_home()
    position = torch.lerp(self.corner, self.far_corner, self.random.uniform("goal position", (3,)))
    return {"qpos": qpos, "qvel": qvel, "goal_position": position, "goal_rotation": self.draw_rotation()}

  def draw_rotation(self) -> Tensor:
    """Return random quaternions [N, 4]: fingers down, turned about the vertical, then tilted sideways."""
    config = self.config
    side, tilt, turn = self.random.uniform("goal rotation", (3,), -1.0, 1.0).unbind(1)
    side, tilt, turn = torch.pi * side, config.goal_tilt / 2 * tilt, config.goal_turn / 2 * turn
    zero = torch.zeros_like(tilt)
    tilted = [tilt.cos(), tilt.sin() * side.cos(), tilt.sin() * side.sin(), zero]
    down = [zero, turn.cos(), turn.sin(), zero]  # rotation by pi about x, then by `turn` about z
    return quat.multiply(torch.stack(tilted, 1), torch.stack(down, 1))

  def update(self) -> None:
    """Compute the distance and the angle from the goal."""
    offset, turn = self.pose_error()
    self.distance.copy_(offset.square().sum(1).sqrt())
    self.angle.copy_(turn.square().sum(1).sqrt())

  def reward(self) -> dict[str, Tensor]:
    """Penalise distance and angle from the goal and motion; reward precision."""
    return {
      "distance": self.distance,
      "angle": self.angle,
      "precise": (1.0 - (self.distance / 0.1).tanh()) * (1.0 - (self.angle / 0.5).tanh()),
      "action": self.action.square().sum(1),
    }

  def success(self) -> Tensor:
    """Succeed within the tolerances of the goal."""
    return (self.distance < self.config.success_distance) & (self.angle < self.config.success_angle)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the arm and the pose error, in world axes."""
    offset, turn = self.pose_error()
    return {"policy": {**self.observe_arm(), "offset": offset, "turn": turn}}

  def metrics(self) -> dict[str, Tensor]:
    """Return the distance [m] and the angle [rad] from the goal."""
    return {"distance": self.distance, "angle": self.angle}

  def goals(self) -> Sequence[base.Goal]:
    """Return the pose of the hand at the goal."""
    return [base.Goal(self.goal_position, quat.to_matrix(self.goal_rotation), "grasp")]

  def pose_error(self) -> tuple[Tensor, Tensor]:
    """Return the offset [N, 3] [m] and the rotation vector [N, 3] [rad] to the goal, in world axes."""
    offset = self.goal_position - self.sim.site_xpos[:, self.point]
    turn = quat.multiply(self.goal_rotation, quat.conjugate(self.sim.xquat[:, self.hand]))
    return offset, quat.to_rotation_vector(turn)
