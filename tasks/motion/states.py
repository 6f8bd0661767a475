"""States of a model in the frames of a clip."""

from typing import Any

import numpy as np

from tasks.motion.clip import Clip, Floats

FREE, SLIDE = 0, 2  # of Model.jnt_type; hinges are 3


def states(clip: Clip, model: Any) -> tuple[Floats, Floats]:
  """Return positions [T, nq] and velocities [T, nv] of a model; joints that the clip lacks are at home."""
  root = root_joint(model)
  place, dof = int(model.jnt_qposadr[root]), int(model.jnt_dofadr[root])
  ids = [model.joint_id(name) for name in clip.joints]
  qpos, qvel = np.tile(model.qpos0, (len(clip), 1)), np.zeros((len(clip), model.nv))
  linear, angular, joint_vel = clip.velocities()
  qpos[:, place : place + 7] = np.concatenate([clip.root_pos, clip.root_quat], 1)
  qpos[:, model.jnt_qposadr[ids]] = clip.joint_pos
  qvel[:, dof : dof + 6] = np.concatenate([linear, angular], 1)
  qvel[:, model.jnt_dofadr[ids]] = joint_vel
  return qpos, qvel


def root_joint(model: Any) -> int:
  """Return the free joint of a floating robot."""
  return int((model.jnt_type == FREE).argmax())
