"""Camera views: geoms and lights in the camera's frame, in every environment."""

from collections.abc import Sequence
from dataclasses import dataclass

from physics.algebra.spatial import Quaternion, Vector
from physics.camera.lens import Lens
from physics.collision.geometry import Shape, geom_shape
from physics.dynamics.camera_frame import TARGETBODY, TARGETBODYCOM, TRACK, TRACKCOM, camera_frame
from physics.dynamics.frame import XBODY, Frame, frame
from physics.dynamics.kinematics import Poses
from physics.dynamics.subtree import centers_of_pose
from physics.model.model import Model
from physics.state.layout import Layout
from physics.trace.trace import Number, Program, cos, sin
from physics.vary.posed import trace_poses
from physics.vary.vary import Variation

# Channels and type of each kind of image.
KINDS = {
  "depth": (1, "float32"),
  "rgb": (3, "uint8"),
  "segmentation": (1, "int32"),
  "normal": (3, "float32"),
}
HALF_DEGREE = 0.008726646259971648  # [rad]
# First rows of a scene: values that a user may write, then derived ones: lens and axes, and the geoms.
POS, QUAT, FOVY, TANGENT, AXES, GEOMS = 0, 3, 7, 8, 9, 18
GEOM_ROWS, LIGHT_ROWS = 15, 6  # the numbers of a `Shape`; position and direction of a light


@dataclass(frozen=True, eq=False)
class View:
  """The view of a camera of the file, or of one that a body carries.

  The scene of a view is memory [row, env]. Its first rows are the camera's offset from that place, position
  [m] and quaternion, and its vertical field of view [degree].
  """

  name: str  # of the camera or the body
  camera: int  # of the file, -1: none
  body: int  # that carries a camera if the file has none
  lens: Lens
  kinds: Sequence[str]  # of images
  geoms: Sequence[int]
  lights: list[int]

  @property
  def lights_row(self) -> int:
    """First row of the lights in the camera's frame [lights, 6]: position, direction; the last is its own."""
    return GEOMS + GEOM_ROWS * len(self.geoms)

  @property
  def lamps_row(self) -> int:
    """First row of the lights where they are, likewise, to be written."""
    return self.lights_row + LIGHT_ROWS * (len(self.lights) + 1)

  @property
  def diffuse_row(self) -> int:
    """First row of the colours [lights, 3] of the lights, to be written."""
    return self.lamps_row + LIGHT_ROWS * len(self.lights)

  @property
  def colors_row(self) -> int:
    """First row of the colours [ngeom, 3] of the model's geoms, to be written."""
    return self.diffuse_row + 3 * (len(self.lights) + 1)

  def rows(self, model: Model) -> int:
    """Return the number of rows of the scene."""
    return self.colors_row + 3 * model.ngeom

  def place(self, model: Model, p: Poses) -> Frame:
    """Return the frame that the offset is relative to."""
    if self.camera >= 0:
      return camera_frame(model, p, self.camera, lambda: centers_of_pose(model, p))
    return frame(model, p, XBODY, self.body)


def trace_view(model: Model, layout: Layout, view: View, variation: Variation | None = None) -> Program:
  """Trace the scene of a view, with parameters and arrays of `step.trace_step`; `control` is the scene."""
  program, model, p = trace_poses(model, layout, variation)
  given = [program.read_memory("control", row) for row in range(TANGENT)]
  place, turn = view.place(model, p), Quaternion.normalize(given[QUAT:FOVY])
  axes = place.rotation.times(turn.matrix())
  position = place.position + place.rotation @ Vector(*given[POS:QUAT])
  half = given[FOVY] * HALF_DEGREE
  rows = [sin(half) / cos(half), *(x for row in axes for x in row)]
  for geom in view.geoms:
    seen = geom_shape(model, p, geom, position + (place.origin - p.origin[model.geom_bodyid[geom]]))
    rotation = axes.transposed.times(seen.rotation)
    rows += Shape(axes.transposed @ seen.position, rotation, seen.size).components
  camera = Frame(0, place.origin, position, place.quaternion, axes)
  for i, light in enumerate(view.lights):
    first = view.lamps_row + LIGHT_ROWS * i
    given = [program.read_memory("control", row) for row in range(first, first + LIGHT_ROWS)]
    rows += _light(model, p, camera, light, given)
  rows += (0.0, 0.0, 0.0, 0.0, 0.0, -1.0)  # the camera's own light
  for row, value in enumerate(rows):
    program.write_memory("control", TANGENT + row, value)
  return program.finish()


def _light(model: Model, p: Poses, camera: Frame, light: int, given: Sequence[Number]) -> list[Number]:
  """Return a light's position and direction [6] in the camera's frame; `given` are as in `light_start`."""
  mj, inverse = model.mj, camera.rotation.transposed
  body, target, mode = int(mj.light_bodyid[light]), int(mj.light_targetbodyid[light]), mj.light_mode[light]
  at, way = p.relative(body, Vector(*given[:3])), Vector(*given[3:])
  if mode == TRACK:
    at = p.position[body] + Vector(*given[:3])
  elif mode == TRACKCOM:
    at = centers_of_pose(model, p)[body] + Vector(*given[:3])
  elif mode in (TARGETBODY, TARGETBODYCOM) and target >= 0:
    place = centers_of_pose(model, p)[target] if mode == TARGETBODYCOM else p.position[target]
    way = (place - at) + (p.origin[target] - p.origin[body])
  else:
    way = p.rotation[body] @ way
  return [*(inverse @ ((at - camera.position) + (p.origin[body] - camera.origin))), *(inverse @ way)]
