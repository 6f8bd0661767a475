"""States of a model in the frames of a clip."""

from typing import Any

import torch
from torch import Tensor

from tasks.motion.clip import Clip

FREE, SLIDE = 0, 2  # of Model.jnt_type; hinges are 3


def states(clip: Clip, model: Any) -> tuple[Tensor, Tensor]:
  """Return positions [T, nq] and velocities [T, nv] of a model; joints that the clip lacks are at home."""
  root = root_joint(model)
  place, dof = int(model.jnt_qposadr[root]), int(model.jnt_dofadr[root])
  ids = [model.joint_id(name) for name in clip.joints]
  qpos = torch.tensor(model.qpos0).repeat(len(clip), 1)
  qvel = torch.zeros(len(clip), model.nv, dtype=torch.float64)
  linear, angular, joint_vel = clip.velocities()
  qpos[:, place : place + 7] = torch.cat([clip.root_pos, clip.root_quat], 1)
  qpos[:, model.jnt_qposadr[ids]] = clip.joint_pos
  qvel[:, dof : dof + 6] = torch.cat([linear, angular], 1)
  qvel[:, model.jnt_dofadr[ids]] = joint_vel
  return qpos, qvel


def root_joint(model: Any) -> int:
  """Return the free joint of a floating robot."""
  return int((model.jnt_type == FREE).argmax())
