"""Projection of a point into the image of a camera of the robot file, by MuJoCo's own kinematics."""

import math

import mujoco
import numpy as np


def project(task, env, camera, point, size):
  """Return row and column [pixels] of a point [3] [m], and its depth [m], in a square image of some size."""
  mj = task.model.mj
  data = mujoco.MjData(mj)
  data.qpos[:] = task.sim.qpos[env].double().cpu().numpy()
  mujoco.mj_kinematics(mj, data)
  mujoco.mj_camlight(mj, data)
  index = mj.camera(camera).id
  x, y, z = data.cam_xmat[index].reshape(3, 3).T @ (np.asarray(point, float) - data.cam_xpos[index])
  focal = size / 2 / math.tan(math.radians(mj.cam_fovy[index]) / 2)
  return size / 2 - focal * y / -z, size / 2 + focal * x / -z, -z
