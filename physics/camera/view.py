"""The view of a camera: what it sees, relative to it, in every environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from physics.algebra.spatial import Quaternion, Vector, vector
from physics.camera.lens import Lens
from physics.collision.geometry import Shape, geom_shape
from physics.dynamics.camera_frame import camera_frame
from physics.dynamics.frame import XBODY, Frame, frame
from physics.dynamics.kinematics import Mocap, Poses, poses
from physics.dynamics.subtree import centers_of_pose
from physics.model.model import Model
from physics.state.layout import Layout
from physics.state.state import Memory
from physics.trace.trace import Number, Program, cos, sin
from physics.vary.vary import Variation

KINDS = {"depth": (1, "float32"), "segmentation": (1, "int32"), "normal": (3, "float32")}  # channels and type
HALF_DEGREE = 0.008726646259971648  # [rad]
# Rows of a scene: what is written by the user, what follows from it, and then the geoms and the lights.
POS, QUAT, FOVY, TANGENT, AXES, GEOMS = 0, 3, 7, 8, 9, 18
GEOM_ROWS, LIGHT_ROWS = 15, 6  # the numbers of a `Shape`; position and direction of a light


@dataclass(frozen=True, eq=False)
class View:
  """What a camera of the file sees, or one that a body carries.

  The scene of a view is memory [row, env]. Its first rows are the camera's offset from that place, position
  [m] and quaternion, and its vertical field of view [degree].
  """

  camera: int  # of the file, -1: none
  body: int  # that carries a camera if the file has none
  lens: Lens
  kinds: Sequence[str]  # of images
  geoms: Sequence[int]
  lights: Sequence[int]

  @property
  def rows(self) -> int:
    """Number of rows of the scene."""
    return GEOMS + GEOM_ROWS * len(self.geoms) + LIGHT_ROWS * len(self.lights)

  def place(self, model: Model, p: Poses) -> Frame:
    """Return the frame that the offset is relative to."""
    if self.camera >= 0:
      return camera_frame(model, p, self.camera, lambda: centers_of_pose(model, p))
    return frame(model, p, XBODY, self.body)


def trace_view(model: Model, layout: Layout, view: View, variation: Variation | None = None) -> Program:
  """Trace the scene of a view, with parameters and arrays of `step.trace_step`; `control` is the scene."""
  program = Program()
  if variation:
    model = variation.model_in(program)
  for name in ("substeps", "stride", "integrate"):
    program.parameter(name)
  state = Memory(program, layout).state([])
  p = poses(model, state.qpos, Mocap(state.mocap_pos, state.mocap_quat))
  given = [program.read_memory("control", row) for row in range(TANGENT)]
  place, turn = view.place(model, p), Quaternion.normalize(given[QUAT:FOVY])
  axes = place.rotation.times(turn.matrix())
  position = place.position + place.rotation @ Vector(*given[POS:QUAT])
  half = given[FOVY] * HALF_DEGREE
  rows = [sin(half) / cos(half), *(x for row in axes for x in row)]
  for geom in view.geoms:
    seen = geom_shape(model, p, geom, position + (place.origin - p.origin[model.geom_bodyid[geom]]))
    rotation = axes.transposed.times(seen.rotation)
    rows += Shape(axes.transposed @ seen.position, rotation, seen.size).numbers
  for light in view.lights:
    rows += _light(model, p, light, Frame(0, place.origin, position, place.quaternion, axes))
  for row, value in enumerate(rows):
    program.write_memory("control", TANGENT + row, value)
  return program.finish()


def _light(model: Model, p: Poses, light: int, camera: Frame) -> list[Number]:
  """Return the position and the direction of a light before a camera."""
  mj = model.mj
  body = int(mj.light_bodyid[light])
  at = p.relative(body, vector(mj.light_pos[light])) - camera.position + (p.origin[body] - camera.origin)
  inverse = camera.rotation.transposed
  return [*(inverse @ at), *(inverse @ (p.rotation[body] @ vector(mj.light_dir[light])))]
