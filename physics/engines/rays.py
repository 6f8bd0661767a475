"""Ray casting by MuJoCo C."""

import mujoco
import numpy as np

from physics.model.model import Floats
from physics.ray.raycaster import RayFrame, Rays


def cast(mj: mujoco.MjModel, data: mujoco.MjData, rays: Rays) -> Floats:
  """Return the distance of each ray [n] in the poses that `data` holds, -1 if it meets nothing."""
  chosen = np.isin(np.arange(mj.ngeom), rays.geoms)
  groups = mj.geom_group.copy()
  mj.geom_group[:] = np.where(chosen, 0, 1)  # mj_ray can select geoms by group only
  only = np.array([1, 0, 0, 0, 0, 0], np.uint8)
  turn, start = axes(rays.frame, data.xmat[rays.body].reshape(3, 3)), data.xpos[rays.body]
  distances = [
    mujoco.mj_ray(mj, data, start + turn @ origin, turn @ direction, only, 1, -1, None)
    for origin, direction in zip(rays.origins, rays.directions, strict=True)
  ]
  mj.geom_group[:] = groups
  return np.array(distances)


def axes(frame: RayFrame, body: Floats) -> Floats:
  """Return the axes of a frame in the world [3, 3], as columns, from the body's."""
  yaw = np.arctan2(body[1, 0], body[0, 0])
  about_z = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
  return {"body": body, "yaw": about_z, "world": np.eye(3)}[frame]
