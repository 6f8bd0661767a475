"""Fish: a fish with five servos swims to a target, or keeps upright."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tasks.base import option
from tasks.shared import mjcf, quat, reward, suite

TRAIN = suite.TRAIN | {"max_steps": 20_000_000}
PPO = suite.PPO


@dataclass
class Config(suite.Config):
  """Settings of fish."""

  substeps: int = option(10, "number of physics steps per control step", low=1)
  swim: bool = option(True, "whether there is a target to swim to")


class Task(suite.Task):
  """Fish of the suite with 5 actions, targets of servos, and 24 observations, or 21 without a target."""

  outputs = ("geom_xmat", "geom_xpos", "xmat")
  config: Config

  @classmethod
  def scene(cls, config: Any) -> str:  # noqa: ARG003
    """Return the robot file with a target that can be moved."""
    root = suite.read("fish.xml")
    mjcf.make_movable(root, "target")
    return mjcf.text(root)

  def setup(self) -> None:
    """Look up torso, mouth and target; store the box of targets."""
    super().setup()
    self.torso = self.model.body_id("torso")
    self.mouth, self.target = (self.model.geom_id(name) for name in ("mouth", "target"))
    self.radii = float(self.model.geom_size[[self.mouth, self.target], 0].sum())  # [m]
    self.corners = self.constant([[-0.4, -0.4, 0.1], [0.4, 0.4, 0.3]])  # [2, 3] [m]

  def initial_state(self) -> dict[str, Tensor]:
    """Start in any orientation, with the joints nearly straight."""
    turn, joints = self.random.normal("orientation", (4,)), self.model.nq - 7
    root = [self.start_low[:3].expand(self.num_envs, 3), turn / turn.norm(dim=1, keepdim=True)]
    qpos = torch.cat([*root, self.random.uniform("joints", (joints,), -0.2, 0.2)], dim=1)
    share, (low, high) = self.random.uniform("target", (1, 3)), self.corners
    return {"qpos": qpos, "mocap_pos": low + (high - low) * share}

  def upright(self) -> Tensor:
    """Return the cosine of the torso's tilt [num_envs]."""
    return self.sim.xmat[:, self.torso, suite.ZZ]

  def to_target(self) -> Tensor:
    """Return the offset of the target from the mouth, in its frame [num_envs, 3] [m]."""
    frame = self.sim.geom_xmat[:, self.mouth].unflatten(1, (3, 3))
    return quat.to_body(frame, self.sim.geom_xpos[:, self.target] - self.sim.geom_xpos[:, self.mouth])

  def product(self) -> Tensor:
    """Reward being upright, and a mouth in or near the target."""
    if not self.config.swim:
      return reward.tolerance(self.upright(), 1.0, 1.0, margin=1.0)
    near = reward.tolerance(self.to_target().norm(dim=1), high=self.radii, margin=2 * self.radii)
    return (7 * near + (1 + self.upright()) / 2) / 8

  def observe(self) -> dict[str, dict[str, Tensor]]:
    """Return the joints, the tilt, the target and the velocities."""
    blocks = {"joint_angles": self.sim.qpos[:, 7:], "upright": self.upright()}
    if self.config.swim:
      blocks["target"] = self.to_target()
    return {"policy": blocks | {"velocity": self.sim.qvel}}
