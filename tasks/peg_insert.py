"""Peg insert: an arm inserts a square peg, held in its gripper, into a hole with 2 mm of clearance per side.

The rewards follow Factory in Isaac Lab (`isaaclab_tasks/direct/factory/factory_tasks_cfg.py`; Narang
et al. 2022, Tang et al. 2024): the closeness of points of the peg to their goals, in three widths, and
constant rewards for a peg that has entered the hole and for one that has reached its end. Friction holds the
peg: it can slip, and the episode fails if it leaves the fingers.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks import base
from tasks.base import option
from tasks.shared import arm, quat

TRAIN: dict[str, object] = {"num_envs": 1024, "max_steps": 10_000_000}  # most succeed after 2 million steps
PPO: dict[str, object] = {
  "minibatches": 4,
  "gamma": 0.97,
  "hidden": [128, 128],
  "log_std_init": -0.7,
  "reward_transform": "scale",  # rewards are bounded, and the last millimetres matter most
}


@dataclass
class Config(arm.Config):
  """Settings of peg insert. The reward of a step is at most the sum of the weights."""

  control: arm.Control = option(
    arm.Control.osc, "controlled quantity: joint targets, or the grasp point by operational-space control"
  )
  osc_turn: float = option(0.3, "rotation of the hand about each axis for an action of 1", "rad", low=0)
  start_angle: float = option(0.1, "largest start offset of the first and the last joint", "rad", low=0)
  start_slip: float = option(0.003, "largest start offset of the peg between the fingers", "m", low=0)
  hole_spread: float = option(0.1, "largest offset of the hole along x and y", "m", low=0)
  hole_turn: float = option(0.35, "largest rotation of the hole", "rad", low=0)
  entered_depth: float = option(0.1, "fraction of the hole depth at which the peg has entered", low=0, high=1)
  arrived_depth: float = option(
    0.96, "fraction of the hole depth at which the peg is inserted", low=0, high=1
  )
  lost_distance: float = option(0.08, "distance of the peg from the grasp point beyond which it is lost", "m")
  reward_far: float = option(0.17, "weight of closeness to the goal on a scale of 0.2 m")
  reward_near: float = option(0.25, "weight of closeness to the goal on a scale of 0.02 m")
  reward_close: float = option(0.5, "weight of closeness to the goal on a scale of 0.01 m")
  reward_entered: float = option(1.0, "weight of the constant reward while the peg is in the hole")
  reward_arrived: float = option(1.0, "weight of the constant reward while the peg is fully inserted")


class Task(arm.Task):
  """Peg insert task; actions are displacements of the grasp point or of joints; the gripper stays closed."""

  robot = base.ASSETS / "arm" / "hole.xml"
  grips = False
  config: Config

  def setup(self) -> None:
    """Look up the peg, its points, and the size of the hole."""
    super().setup()
    self.peg = self.qpos_of("peg")
    x, _, z = self.model.geom_size[self.model.geom_id("peg")]
    _, width, height = self.model.geom_size[self.model.geom_id("front_wall")]
    self.points = self.constant([[-x, 0, -z], [x, 0, -z], [-x, 0, z], [x, 0, z]])  # on the peg [4, 3] [m]
    self.above = self.constant([0.0, 0.0, z])  # offset from the end of the peg to its middle [3] [m]
    self.depth = 2.0 * float(height)  # depth of the hole [m]
    self.hole = self.constant(self.model.mocap_pos0)  # [1, 3] [m]
    self.aside = 2.0 * float(width - x)  # largest offset from the middle of a peg in the hole [m]
    self.end = self.buffer(3)  # position of the end of the peg, relative to the hole's [N, 3] [m]
    self.gap = self.buffer()  # mean distance of the points on the peg from their goals [N] [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Rotate the base joint and the hand at random, together with the peg; place the hole at random."""
    config, random = self.config, self.random.uniform("start", (7,), -1.0, 1.0).T
    qpos = torch.empty_like(self.sim.qpos).copy_(self.home)
    arm_turn, hand_turn = config.start_angle * random[:2]
    angles, peg = qpos[:, self.angles], qpos[:, self.peg]
    angles[:, 0] += arm_turn
    angles[:, 6] -= hand_turn  # the hand points down
    turn, slip = arm_turn + hand_turn, config.start_slip * random[2:4]
    reach = peg[:, 0].clone()
    peg[:, 0] = reach * arm_turn.cos() + slip[0] * turn.cos()
    peg[:, 1] = reach * arm_turn.sin() + slip[0] * turn.sin()
    peg[:, 2] += slip[1]
    peg[:, 3:] = about_vertical(turn)
    hole = self.sim.mocap_pos.clone().copy_(self.hole)
    hole[:, 0, :2] += config.hole_spread * random[4:6].T
    turned = about_vertical(config.hole_turn * random[6]).unsqueeze(1)
    return {"qpos": qpos, "qvel": torch.zeros_like(self.sim.qvel), "mocap_pos": hole, "mocap_quat": turned}

  def update(self) -> None:
    """Compute the position of the end of the peg and the distance of the peg from its goal."""
    offset, turn = self.offsets()
    self.end.copy_(offset - turn[:, :, 2] * self.above[2])
    # A matrix product would fail in an evaluation in MuJoCo C, which mixes float32 with float64.
    turned = (turn.unsqueeze(1) * self.points.unsqueeze(1)).sum(3)
    self.gap.copy_((offset.unsqueeze(1) + turned).norm(dim=2).mean(1))

  def reward(self) -> dict[str, Tensor]:
    """Reward a peg near its goal, in the hole, and fully inserted."""
    return {
      "far": nearness(self.gap, 5.0, 4.0),
      "near": nearness(self.gap, 50.0, 2.0),
      "close": nearness(self.gap, 100.0, 0.0),
      "entered": self.is_deep(self.config.entered_depth),
      "arrived": self.is_deep(self.config.arrived_depth),
    }

  def terminated(self) -> Tensor:
    """Fail if the peg has left the fingers."""
    offset = self.sim.qpos[:, self.peg][:, :3] - self.sim.site_xpos[:, self.point]
    return offset.norm(dim=1) > self.config.lost_distance

  def success(self) -> Tensor:
    """Succeed if the peg is fully inserted."""
    return self.is_deep(self.config.arrived_depth)

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the arm, the position and axis errors of the peg, and the orientation of the hole."""
    offset, turn = self.offsets()
    seen = {"peg": offset, "peg_axes": turn[:, :, ::2], "hole": self.sim.mocap_quat[:, 0, ::3]}
    return {"policy": self.observe_arm() | seen}

  def metrics(self) -> dict[str, Tensor]:
    """Return the distance of the peg from its goal [m] and whether it is in the hole."""
    return {"gap": self.gap, "in_hole": self.is_deep(self.config.entered_depth)}

  def offsets(self) -> tuple[Tensor, Tensor]:
    """Return the offset of the peg from its goal [N, 3] [m], and the difference of their axes [N, 3, 3]."""
    peg = self.sim.qpos[:, self.peg]
    turns = quat.to_matrix(torch.stack([peg[:, 3:], self.sim.mocap_quat[:, 0]], 1))
    return peg[:, :3] - self.sim.mocap_pos[:, 0] - self.above, turns[:, 0] - turns[:, 1]

  def is_deep(self, part: float) -> Tensor:
    """Return where the peg has entered the hole by at least a fraction `part` of its depth [N] bool."""
    inside = self.end[:, :2].norm(dim=1) < self.aside
    return inside & (self.end[:, 2] < (1.0 - part) * self.depth)


def about_vertical(angle: Tensor) -> Tensor:
  """Return quaternions [N, 4] of rotations by `angle` [N] [rad] about the world z axis."""
  zero = torch.zeros_like(angle)
  return torch.stack([(angle / 2).cos(), zero, zero, (angle / 2).sin()], 1)


def nearness(distance: Tensor, slope: float, flat: float) -> Tensor:
  """Return the closeness [N] at `distance` [N] [m]: 1 at zero, falling with `slope` [1/m].

  A larger `flat` widens the peak.
  """
  return (2.0 + flat) / ((slope * distance).exp() + flat + (-slope * distance).exp())
