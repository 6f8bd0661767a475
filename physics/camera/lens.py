"""Camera lens: the direction of each pixel's ray, and the clipping distances."""

from dataclasses import dataclass

from physics.model.model import Model


@dataclass(frozen=True)
class Lens:
  """A pinhole: pixel (column, row), counted from the upper left, looks along the camera's (x, y, -1).

  x and y are `(column + 0.5) * across + left` and `(row + 0.5) * down + top`, both times the tangent of half
  the vertical field of view. Nothing nearer than `near` or farther than `far` is drawn.
  """

  width: int
  height: int
  across: float
  left: float
  down: float
  top: float
  near: float  # [m]
  far: float  # [m]

  @staticmethod
  def of(
    model: Model, camera: int, size: tuple[int, int], depths: tuple[float, float] | None = None
  ) -> "Lens":
    """Return the lens of a camera of the file (-1: none); pixels are square unless the file says more."""
    mj, (width, height) = model.mj, size
    extent, clip = float(mj.stat.extent), mj.vis.map
    near, far = depths or (float(clip.znear) * extent, float(clip.zfar) * extent)
    aspect, shift = width / height, (0.0, 0.0)
    if camera >= 0 and mj.cam_sensorsize[camera].all():
      sensor, focal = mj.cam_sensorsize[camera].astype(float), mj.cam_intrinsic[camera].astype(float)
      aspect = sensor[0] / focal[0] / (sensor[1] / focal[1])
      shift = tuple(2.0 * focal[2:] / sensor)
    return Lens(
      width,
      height,
      across=2.0 * aspect / width,
      left=-aspect * (1.0 - shift[0]),
      down=-2.0 / height,
      top=1.0 - shift[1],
      near=near,
      far=far,
    )
