"""Cameras: fixed in their bodies, carried along without turning, or turned to a body that they look at.

Source: MuJoCo's XML Reference, body/camera/mode.
"""

from collections.abc import Callable
from dataclasses import replace

from physics.algebra.spatial import AXES, MINVAL, Matrix, Vector, cross, dot, select, vector
from physics.dynamics.frame import CAMERA, XBODY, Frame, frame
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.trace.trace import maximum, sqrt

TRACK, TRACKCOM, TARGETBODY, TARGETBODYCOM = range(1, 5)  # mjtCamLight; 0: fixed in the body


def camera_frame(model: Model, p: Poses, camera: int, centers: Callable[[], list[Vector]]) -> Frame:
  """Return a camera's frame (MuJoCo's `mj_camlight`); as there, the quaternion is a fixed camera's.

  `centers` returns the centre of mass of each body's subtree, relative to the tree origin.
  """
  fixed, mode = frame(model, p, CAMERA, camera), model.cam_mode[camera]

  def seen(body: int, *, of_mass: bool) -> Frame:
    found = frame(model, p, XBODY, body)
    return replace(found, position=centers()[body]) if of_mass else found

  if mode in (TRACK, TRACKCOM):
    body = seen(int(model.cam_bodyid[camera]), of_mass=mode == TRACKCOM)
    offset = vector((model.cam_poscom0 if mode == TRACKCOM else model.cam_pos0)[camera])
    rows = model.cam_mat0[camera].reshape(3, 3)
    return replace(fixed, position=body.position + offset, rotation=Matrix(*map(vector, rows)))
  target = int(model.cam_targetbodyid[camera])
  if mode in (TARGETBODY, TARGETBODYCOM) and target >= 0:
    away = fixed.offset(seen(target, of_mass=mode == TARGETBODYCOM))
    return replace(fixed, rotation=_turned_from(away))
  return fixed


def _turned_from(away: Vector) -> Matrix:
  """Return the rotation of an upright camera, which looks against its z axis; this points along `away`."""
  z = _normalized(away)
  x = _normalized(cross(AXES[2], z))
  return Matrix(x, _normalized(cross(z, x)), z).transposed


def _normalized(a: Vector) -> Vector:
  """Return the unit vector along another one; the x axis if it vanishes (MuJoCo's `mju_normalize3`)."""
  length = sqrt(dot(a, a))
  return select(length < MINVAL, AXES[0], a * (1.0 / maximum(length, MINVAL)))
