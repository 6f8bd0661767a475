"""Drawer open: an arm grasps the handle of a cabinet drawer and pulls the drawer open.

Reward and opening follow IsaacGymEnvs 1.5.1 (`isaacgymenvs/tasks/franka_cabinet.py`,
`isaacgymenvs/cfg/task/FrankaCabinet.yaml`), with three differences. The episode continues after the drawer is
open, with a reward for every step in which it stays open. Whether the handle bar is between the fingers is
decided in the hand frame, whichever finger is above. There is no penalty on fingers beyond the handle,
because they cannot pass it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import arm

# Distance from the handle within which its reward doubles; largest distance of the bar from the middle of the
# fingers around it [m]; fractions of open_distance at which the drawer earns bonuses.
CLOSE, AROUND = 0.02, 0.02
STARTED, HALFWAY = 0.025, 0.5
TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 10_000_000}  # most succeed after 3 million steps
PPO: dict[str, object] = {
  "minibatches": 4,
  "gamma": 0.97,
  "hidden": [128, 128],
  "log_std_init": -0.7,
  "reward_transform": "scale",  # with symlog, the last centimetres would add too little
  "reward_scale": 0.1,
}


@dataclass
class Config(arm.Config):
  """Settings of drawer open."""

  control: arm.Control = option(
    arm.Control.osc, "controlled quantity: joint targets, or the grasp point by operational-space control"
  )
  osc_turn: float = option(0.3, "rotation of the hand about each axis for an action of 1", "rad", low=0)
  open_distance: float = option(0.39, "displacement at which the drawer is open", "m", low=0)
  reward_near: float = option(2.0, "weight of the closeness of the grasp point to the handle, 0 to 2")
  reward_turned: float = option(0.5, "weight of the alignment of the hand with the drawer, -0.5 to 1")
  reward_around: float = option(0.125, "weight of the constant reward while the bar is between the fingers")
  reward_closed: float = option(5.0, "weight of the closing of fingers around the bar", "1/m")
  reward_pulled: float = option(
    7.5, "weight of the drawer displacement, doubled with the bar between the fingers", "1/m"
  )
  reward_opened: float = option(0.5, "weight of the bonuses for stages of the opening, 0 to 4")
  reward_action: float = option(-0.01, "weight of the penalty on the sum of squared actions")


class Task(arm.Task):
  """Drawer open task; actions are displacements of the grasp point or of joints, and the gripper opening."""

  robot = base.ASSETS / "arm" / "cabinet.xml"
  config: Config

  def setup(self) -> None:
    """Look up the drawer and its handle."""
    super().setup()
    self.drawer, self.drawer_speed = self.qpos_of("drawer"), self.qvel_of("drawer")
    self.handle = self.model.site_id("handle")
    self.bar = float(self.model.geom_size[self.model.geom_id("bar"), 1])  # half length of the bar [m]
    self.stages = self.config.open_distance * self.constant([STARTED, HALFWAY, 1.0])  # [3] [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start near home in front of the closed drawer."""
    qpos, qvel = self.arm_at_home()
    return {"qpos": qpos, "qvel": qvel}

  def reward(self) -> dict[str, Tensor]:
    """Reward a hand that is aligned with the drawer and around its handle, and drawer displacement."""
    hand, to_handle = self.hand_axes(), self.to_handle()
    distance = to_handle.norm(dim=1)
    nearness = 1.0 / (1.0 + distance.square()).square()
    into, across = hand[:, 0, 2], hand[:, 2, 1]  # x component of the hand's z axis, z component of its y axis
    around = self.is_around(hand, to_handle)
    displacement = self.sim.qpos[:, self.drawer]  # [N, 1]
    passed = (displacement > self.stages).float()
    return {
      "near": torch.where(distance < CLOSE, 2.0, 1.0) * nearness,
      "turned": 0.5 * (into * into.abs() + across.square()),
      "around": around,
      "closed": around * (self.max_opening - self.sim.qpos[:, self.fingers].sum(1)),
      "pulled": (1.0 + around) * displacement.squeeze(1),
      "opened": passed[:, 0] + around * (passed[:, 1] + 2.0 * passed[:, 2]),
      "action": self.action.square().sum(1),
    }

  def success(self) -> Tensor:
    """Succeed if the drawer is open."""
    return self.sim.qpos[:, self.drawer].squeeze(1) > self.config.open_distance

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the arm, the offset of the handle from the grasp point, and the drawer."""
    drawer = {"way": self.sim.qpos[:, self.drawer], "drawer_speed": self.sim.qvel[:, self.drawer_speed]}
    return {"policy": self.observe_arm() | {"to_handle": self.to_handle()} | drawer}

  def metrics(self) -> dict[str, Tensor]:
    """Return the drawer displacement [m] and the distance of the grasp point from the handle [m]."""
    displacement = self.sim.qpos[:, self.drawer].squeeze(1)
    return {"way": displacement, "handle_distance": self.to_handle().norm(dim=1)}

  def hand_axes(self) -> Tensor:
    """Return the axes of the hand in world coordinates, as columns [N, 3, 3]."""
    return self.sim.xmat[:, self.hand].unflatten(1, (3, 3))

  def to_handle(self) -> Tensor:
    """Return the offset of the handle from the grasp point [N, 3] [m]."""
    return self.sim.site_xpos[:, self.handle] - self.sim.site_xpos[:, self.point]

  def is_around(self, hand: Tensor, to_handle: Tensor) -> Tensor:
    """Return where the bar is between the fingers [N] bool, from hand axes [N, 3, 3] and offset [N, 3]."""
    x, y, z = (hand * to_handle.unsqueeze(2)).sum(1).unbind(1)  # handle position in the hand frame
    left, right = self.sim.qpos[:, self.fingers].unbind(1)
    return (y < left) & (y > -right) & (z.abs() < AROUND) & (x.abs() < self.bar)
