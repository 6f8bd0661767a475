"""Robot of a scene, and a camera that frames it."""

import dataclasses
import itertools
import math

import mujoco
import numpy as np
from mujoco import mjtGeom, mjtJoint, mjtTrn
from numpy.typing import NDArray

AZIMUTH, ELEVATION = 130.0, -20.0  # of the camera [degree]
ELEVATION_ON_HILLS = -35.0  # stairs of 29 degrees do not hide the robot, and their steps are seen [degree]
NEAR, FAR = 1.2, 1.4  # camera distance, as a multiple of the shortest at which all is in the picture
ASPECT = 4 / 3  # of a picture, width / height
HIDDEN = 3  # first group of geoms that MuJoCo does not draw by default
GROUND = (mjtGeom.mjGEOM_PLANE, mjtGeom.mjGEOM_HFIELD)
UNIT_CUBE = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))  # its corners [8, 3]


@dataclasses.dataclass(frozen=True)
class Robot:
  """The actuated kinematic tree of a model."""

  body: int  # root body of the tree
  dof: int  # first degree of freedom of the tree
  free: bool  # whether the root has a free joint; dofs from `dof` on are then its velocity along x, y, z
  roams: bool  # whether the root can go anywhere, by a free joint or a slide without limits


def find_robot(model: mujoco.MjModel) -> Robot:
  """Return the tree of the first actuator on a joint or site, or else the first tree that moves."""
  bodies = {mjtTrn.mjTRN_JOINT: model.jnt_bodyid, mjtTrn.mjTRN_SITE: model.site_bodyid}
  targets = zip(model.actuator_trntype.tolist(), model.actuator_trnid[:, 0].tolist(), strict=True)
  driven = [int(bodies[kind][target]) for kind, target in targets if kind in bodies]
  root = model.body_rootid[driven[0] if driven else model.dof_bodyid[0]]
  dof = int(np.flatnonzero(model.body_rootid[model.dof_bodyid] == root)[0])
  free = bool(model.jnt_type[model.dof_jntid[dof]] == mjtJoint.mjJNT_FREE)
  slides = (model.jnt_bodyid == root) & (model.jnt_type == mjtJoint.mjJNT_SLIDE) & ~model.jnt_limited
  return Robot(int(root), dof, free, free or bool(slides.any()))


def subject(model: mujoco.MjModel, robot: Robot) -> NDArray[np.bool_]:
  """Return the geoms to frame [ngeom] bool: a robot that roams, or else all that can move.

  A body that can move comes with its mount: the foot of an arm, the cabinet of a drawer.
  """
  roots, bodies = model.body_rootid[model.geom_bodyid], model.geom_bodyid
  drawn = ~np.isin(model.geom_type, GROUND) & (model.geom_group < HIDDEN) & (model.geom_rgba[:, 3] > 0)
  if robot.roams:
    chosen = roots == robot.body
  else:
    chosen = np.isin(roots, model.body_rootid[model.dof_bodyid]) | (model.body_mocapid[bodies] >= 0)
  return chosen & drawn if (chosen & drawn).any() else chosen  # a robot may have hidden geoms alone


def corners(model: mujoco.MjModel, data: mujoco.MjData, geoms: NDArray[np.bool_]) -> NDArray[np.float64]:
  """Return the corners [n, 3] of the boxes around geoms [ngeom] bool."""
  boxes, turns = model.geom_aabb[geoms].reshape(-1, 2, 3), data.geom_xmat[geoms].reshape(-1, 3, 3)
  local = boxes[:, :1] + UNIT_CUBE * boxes[:, 1:]
  return (data.geom_xpos[geoms, None] + np.einsum("gij,gcj->gci", turns, local)).reshape(-1, 3)


def ahead(camera: mujoco.MjvCamera) -> NDArray[np.float64]:
  """Return the direction [3] in which a camera looks."""
  turn, rise = math.radians(camera.azimuth), math.radians(camera.elevation)
  return np.array([math.cos(rise) * math.cos(turn), math.cos(rise) * math.sin(turn), math.sin(rise)])


def view(
  model: mujoco.MjModel, data: mujoco.MjData, robot: Robot, aspect: float = ASPECT
) -> mujoco.MjvCamera:
  """Return a camera for pictures of this aspect: it follows a robot that roams, or shows all that can move.

  It needs the kinematics in `data`.
  """
  points = corners(model, data, subject(model, robot))
  camera = mujoco.MjvCamera()
  hilly = (model.geom_type == mjtGeom.mjGEOM_HFIELD).any()
  camera.azimuth, camera.elevation = AZIMUTH, ELEVATION_ON_HILLS if hilly else ELEVATION
  forward = ahead(camera)
  right = np.cross(forward, (0, 0, 1)) / math.cos(math.radians(camera.elevation))
  axes = np.stack([right, np.cross(right, forward), forward])
  if robot.roams:
    camera.type, camera.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, robot.body
    camera.lookat = data.subtree_com[robot.body]  # MuJoCo keeps it there
  else:
    seen = points @ axes.T
    camera.lookat = (seen.min(0) + seen.max(0)) / 2 @ axes
  across, up, depth = ((points - camera.lookat) @ axes.T).T
  slope = math.tan(math.radians(model.vis.global_.fovy / 2))  # of the picture's upper edge
  distance = np.maximum(abs(across) / (slope * aspect), abs(up) / slope) - depth
  camera.distance = (FAR if robot.roams else NEAR) * float(distance.max())
  return camera
