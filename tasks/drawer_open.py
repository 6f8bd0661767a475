"""Drawer open: the arm takes the handle of a cabinet's drawer and pulls it open.

Reward and opening follow IsaacGymEnvs 1.5.1 (`isaacgymenvs/tasks/franka_cabinet.py`,
`isaacgymenvs/cfg/task/FrankaCabinet.yaml`), but for three things: an episode goes on when the drawer is
open, and pays for every step that it stays so; the bar counts as between the fingers where it is so in the
hand's own frame, whichever finger is above; and nothing is charged for fingers beyond the handle: they cannot
pass it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import arm

# The distance from the handle within which nearness counts double, and from the bar to the middle of fingers
# that are around it [m]; openings, as parts of the whole, at which the drawer earns bonuses.
CLOSE, AROUND = 0.02, 0.02
STARTED, HALFWAY = 0.025, 0.5
TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 10_000_000}  # nearly all succeed after 3 million
PPO: dict[str, object] = {
  "minibatches": 4,
  "gamma": 0.97,
  "hidden": [128, 128],
  "log_std_init": -0.7,
  "reward_transform": "scale",  # what the last centimetres bring would be lost beside the rest
  "reward_scale": 0.1,
}


@dataclass
class Config(arm.Config):
  """Settings of the drawer."""

  control: arm.Control = option(arm.Control.osc, "what actions move: the joints' targets, the grasp point")
  osc_turn: float = option(0.3, "largest angle about each axis to which it is pulled", "rad", low=0)
  open_distance: float = option(0.39, "way of the drawer at which it is open", "m", low=0)
  reward_near: float = option(2.0, "weight of the grasp point's nearness to the handle, 0 to 2")
  reward_turned: float = option(0.5, "weight of the hand's alignment with the drawer, -0.5 to 1")
  reward_around: float = option(0.125, "weight of one while the bar is between the fingers")
  reward_closed: float = option(5.0, "weight of how far fingers around the bar are closed", "1/m")
  reward_pulled: float = option(7.5, "weight of the drawer's way, half without a hand on the bar", "1/m")
  reward_opened: float = option(0.5, "weight of the number of stages that the drawer has passed, 0 to 4")
  reward_action: float = option(-0.01, "weight of the summed squared actions")


class Task(arm.Task):
  """The arm's joints, or its grasp point, and the gripper are the action."""

  robot = base.ASSETS / "arm" / "cabinet.xml"
  config: Config

  def setup(self) -> None:
    """Find the drawer and its handle."""
    super().setup()
    self.drawer, self.drawer_speed = self.qpos_of("drawer"), self.qvel_of("drawer")
    self.handle = self.model.site_id("handle")
    self.bar = float(self.model.geom_size[self.model.geom_id("bar"), 1])  # half its length [m]
    self.stages = self.config.open_distance * self.constant([STARTED, HALFWAY, 1.0])  # [3] [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start near home before the closed drawer."""
    qpos, qvel = self.arm_at_home()
    return {"qpos": qpos, "qvel": qvel}

  def reward(self) -> dict[str, Tensor]:
    """Pay for a hand around the handle, turned as the drawer is, and for every way of the drawer."""
    hand, to_handle = self.hand_axes(), self.to_handle()
    distance = to_handle.norm(dim=1)
    nearness = 1.0 / (1.0 + distance.square()).square()
    into, across = hand[:, 0, 2], hand[:, 2, 1]  # of the hand's z axis along x, its y axis along z
    around = self.is_around(hand, to_handle)
    way = self.sim.qpos[:, self.drawer]  # [N, 1]
    passed = (way > self.stages).float()
    return {
      "near": torch.where(distance < CLOSE, 2.0, 1.0) * nearness,
      "turned": 0.5 * (into * into.abs() + across.square()),
      "around": around,
      "closed": around * (self.max_opening - self.sim.qpos[:, self.fingers].sum(1)),
      "pulled": (1.0 + around) * way.squeeze(1),
      "opened": passed[:, 0] + around * (passed[:, 1] + 2.0 * passed[:, 2]),
      "action": self.action.square().sum(1),
    }

  def success(self) -> Tensor:
    """Succeed with the drawer open."""
    return self.sim.qpos[:, self.drawer].squeeze(1) > self.config.open_distance

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Show the arm, the handle from the grasp point, and the drawer."""
    drawer = {"way": self.sim.qpos[:, self.drawer], "drawer_speed": self.sim.qvel[:, self.drawer_speed]}
    return {"policy": self.observe_arm() | {"to_handle": self.to_handle()} | drawer}

  def metrics(self) -> dict[str, Tensor]:
    """Log the drawer's way [m] and the distance from the handle [m]."""
    way = self.sim.qpos[:, self.drawer].squeeze(1)
    return {"way": way, "handle_distance": self.to_handle().norm(dim=1)}

  def hand_axes(self) -> Tensor:
    """Return the hand's axes in the world, as columns [N, 3, 3]."""
    return self.sim.xmat[:, self.hand].unflatten(1, (3, 3))

  def to_handle(self) -> Tensor:
    """Return the handle's offset from the grasp point [N, 3] [m]."""
    return self.sim.site_xpos[:, self.handle] - self.sim.site_xpos[:, self.point]

  def is_around(self, hand: Tensor, to_handle: Tensor) -> Tensor:
    """Return where the bar is between the fingers [N] bool."""
    x, y, z = (hand * to_handle.unsqueeze(2)).sum(1).unbind(1)  # the handle in the hand's frame
    left, right = self.sim.qpos[:, self.fingers].unbind(1)
    return (y < left) & (y > -right) & (z.abs() < AROUND) & (x.abs() < self.bar)
