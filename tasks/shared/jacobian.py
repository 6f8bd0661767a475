"""Jacobian of a site: how a unit speed of each joint of an arm moves and turns it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from tasks.base import Task

SLIDE = 2  # MuJoCo's number of a joint that slides


class Jacobian:
  """Jacobian of a site, for joints on the way to it; of the outputs `site_xpos`, `xpos` and `xmat`."""

  def __init__(self, task: Task, joints: Sequence[str], site: str) -> None:
    """Look up the site, and the axes of the joints in the frames of their bodies."""
    model, found = task.model, [task.model.joint_id(name) for name in joints]
    self._sim, self._site = task.sim, model.site_id(site)
    self._links = task.body_of(*(model.body_names[model.jnt_bodyid[joint]] for joint in found))
    self._anchors = task.constant(model.jnt_pos[found]).unsqueeze(1)  # [joints, 1, 3] [m]
    self._axes = task.constant(model.jnt_axis[found]).unsqueeze(1)  # [joints, 1, 3]
    self.slides = task.constant(model.jnt_type[found]) == SLIDE  # [joints] bool

  def linear(self) -> Tensor:
    """Return the velocity of the site for a unit speed of each joint [num_envs, joints, 3] [m, 1]."""
    frames, axes = self._frames()
    anchors = self._sim.xpos[:, self._links] + (frames * self._anchors).sum(3)
    lever = self._sim.site_xpos[:, self._site].unsqueeze(1) - anchors
    return torch.where(self.slides.unsqueeze(1), axes, torch.linalg.cross(axes, lever))

  def angular(self) -> Tensor:
    """Return the angular velocity of the site for a unit speed of each joint [num_envs, joints, 3] [1]."""
    return self._frames()[1] * ~self.slides.unsqueeze(1)

  def _frames(self) -> tuple[Tensor, Tensor]:
    """Return the rotations of the links [num_envs, joints, 3, 3], and the axes [num_envs, joints, 3]."""
    frames = self._sim.xmat[:, self._links].unflatten(2, (3, 3))
    return frames, (frames * self._axes).sum(3)
