"""Rangefinders: the ray along a site's z axis, and one through each pixel of a camera.

Source: MuJoCo's XML Reference, section sensor/rangefinder.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physics.algebra.spatial import AXES, Vector, dot
from physics.derived import Derived
from physics.dynamics.frame import CAMERA, Frame
from physics.model.model import Floats, Model
from physics.ray.scene import Scene, visible_geoms
from physics.sensor.kinds import Kind, Reading, Sensor
from physics.trace.trace import Number, where

DISTANCE, DIRECTION, ORIGIN, POINT, _, DEPTH = range(6)  # mjtRayDataField; the normal is left out
FIELDS = sum(1 << field for field in (DISTANCE, DIRECTION, ORIGIN, POINT, DEPTH))
PERSPECTIVE = 0  # mjtProjection


@dataclass(frozen=True)
class _Caster:
  """The caster of a sensor's rays: its frame, the geoms, and the fields of a ray that it reports."""

  frame: Frame
  scene: Scene
  fields: Sequence[int]

  def cast(self, start: Vector, way: Vector, ahead: Vector) -> list[Number]:
    """Return a ray's report; its start, its direction and the axis of depth are in the sensor's frame."""
    start, direction = self.frame.rotation @ start, self.frame.rotation @ way
    distance = self.scene.distance(self.frame.position + start, direction)
    hit = where(distance >= 0.0, 1.0, 0.0)
    values: dict[int, Sequence[Number]] = {
      DISTANCE: (distance,),
      DIRECTION: direction * hit,
      ORIGIN: self.frame.world + start,
      POINT: (self.frame.world + start + direction * distance) * hit,
      DEPTH: (where(distance >= 0.0, distance * dot(way, ahead), -1.0),),
    }
    return [value for field in self.fields for value in values[field]]


def _range(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  """Return the fields that the sensor reports of its ray, or of each of its rays, row by row."""
  program, model, frame = derived.program, sensor.model, sensor.frame(derived)
  scene = Scene(program, model, derived.poses, visible_geoms(model, exclude=frame.body), frame.origin)
  caster = _Caster(frame, scene, [field for field in range(DEPTH + 1) if sensor.options[0] >> field & 1])
  if sensor.target[0] != CAMERA:
    return caster.cast(AXES[0] * 0.0, AXES[2], AXES[2])
  starts, ways = _pixels(model, sensor.id)
  data = program.array(sensor.size)
  with program.loop(len(ways)) as pixel:
    start, way = (Vector(*(program.table(x.tolist(), pixel) for x in each.T)) for each in (starts, ways))
    values = caster.cast(start, way, -AXES[2])
    for k, value in enumerate(values):
      data[pixel * len(values) + k] = value
  return data.read()


def _pixels(model: Model, camera: int) -> tuple[Floats, Floats]:
  """Return starts [m] and directions [pixels, 3] of a camera's rays in its frame (`mju_camPixelRay`)."""
  mj, (width, height) = model.mj, model.cam_resolution[camera].tolist()
  center, focal, sensor = np.array([width, height]) / 2.0, model.cam_focal[camera], mj.cam_sensorsize[camera]
  if mj.cam_projection[camera] == PERSPECTIVE and sensor.all():
    center = mj.cam_intrinsic[camera, 2:] / sensor * np.array([width, height], np.float32)
  rows, columns = np.divmod(np.arange(width * height), width)
  offsets = np.stack([columns + 0.5 - center[0], center[1] - rows - 0.5, np.zeros(width * height)], axis=1)
  if mj.cam_projection[camera] == PERSPECTIVE:
    ways = offsets / [*focal, 1.0] - [0.0, 0.0, 1.0]
    return np.zeros_like(ways), ways / np.linalg.norm(ways, axis=1, keepdims=True)
  half = 0.5 * float(mj.cam_fovy[camera])  # [m], which the height and the width of the image both show
  return offsets / [*center, 1.0] * half, np.tile([0.0, 0.0, -1.0], (width * height, 1))


RANGE_READINGS: dict[Kind, Reading] = {Kind.RANGEFINDER: _range}
