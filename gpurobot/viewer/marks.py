"""Goals and velocities in a scene that people look at."""

from collections.abc import Iterator, Sequence
from typing import Any

import mujoco
import numpy as np
from mujoco import mjtGeom, mjtObj
from numpy.typing import NDArray

from gpurobot.viewer.framing import HIDDEN

COMMANDED, ACTUAL = (40, 180, 60), (40, 90, 220)  # colours: of goals and commands, of what a robot does
OPACITY = 0.5  # of a goal
BALL = 0.025  # radius of the ball at a goal without a frame [m]
WIDTH = 0.015  # radius of an arrow [m]
Arrow = NDArray[np.float64]  # start and end [2, 3] [m]


def add_goal(spec: mujoco.MjSpec, name: str, frame: str | None) -> None:
  """Add a mocap body to a scene, which shows a `Goal` with this frame; nothing touches it."""
  body = spec.worldbody.add_body(name=name, mocap=True)
  look = {"rgba": (*np.divide(COMMANDED, 255), OPACITY), "group": 0, "castshadow": False}
  ball = {"type": mjtGeom.mjGEOM_SPHERE, "size": (BALL, 0, 0)}
  for shape in _carried(spec.copy().compile(), frame) if frame else [ball]:
    body.add_geom(**shape, **look, contype=0, conaffinity=0)


def _carried(model: mujoco.MjModel, frame: str) -> Iterator[dict[str, Any]]:
  """Yield the geoms that the body of a site, or a body, carries in the first keyframe, in this frame."""
  data = mujoco.MjData(model)
  if model.nkey:
    mujoco.mj_resetDataKeyframe(model, data, 0)
  mujoco.mj_kinematics(model, data)
  site = mujoco.mj_name2id(model, mjtObj.mjOBJ_SITE, frame)
  origin = data.body(frame) if site < 0 else data.site(site)
  bodies = {model.body(frame).id if site < 0 else int(model.site_bodyid[site])}
  for child in range(model.nbody):  # parents come first
    if model.body_parentid[child] in bodies:
      bodies.add(child)
  shown = (model.geom_group < HIDDEN) & (model.geom_rgba[:, 3] > 0)
  axes, quat = origin.xmat.reshape(3, 3), np.zeros(4)
  for geom in np.flatnonzero(np.isin(model.geom_bodyid, list(bodies)) & shown):
    place, turn = data.geom_xpos[geom], data.geom_xmat[geom].reshape(3, 3)
    shape = {"type": model.geom_type[geom], "size": model.geom_size[geom]}
    if model.geom_type[geom] == mjtGeom.mjGEOM_MESH:  # the compiler has moved its frame to its centre of mass
      mesh, moved = int(model.geom_dataid[geom]), np.zeros(9)
      mujoco.mju_quat2Mat(moved, model.mesh_quat[mesh])
      turn = turn @ moved.reshape(3, 3).T
      place, shape["meshname"] = place - turn @ model.mesh_pos[mesh], model.mesh(mesh).name
    mujoco.mju_mat2Quat(quat, (axes.T @ turn).flatten())
    yield {**shape, "pos": (place - origin.xpos) @ axes, "quat": quat.copy()}


def draw_arrows(scene: mujoco.MjvScene, arrows: Sequence[Arrow]) -> None:
  """Add the arrows of the commanded and the actual velocity to an abstract scene."""
  for arrow, colour in zip(arrows, (COMMANDED, ACTUAL), strict=False):
    geom = scene.geoms[scene.ngeom]
    rgba = np.array([*np.divide(colour, 255), 1], np.float32)
    mujoco.mjv_initGeom(geom, mjtGeom.mjGEOM_ARROW, np.zeros(3), np.zeros(3), np.eye(3).flatten(), rgba)
    mujoco.mjv_connector(geom, mjtGeom.mjGEOM_ARROW, WIDTH, *arrow)
    geom.castshadow = False
    scene.ngeom += 1
