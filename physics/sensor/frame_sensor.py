"""Frame sensors: poses, velocities, accelerations, interaction forces, and inertial units."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from physics.algebra.spatial import MINVAL, Force, Motion, Vector, cross, dot, vector
from physics.collision.geometry import CAPSULE, CYLINDER, ELLIPSOID, SPHERE
from physics.derived import Derived
from physics.dynamics.camera_frame import camera_frame
from physics.dynamics.frame import BODY, Frame, frame
from physics.model.model import Model
from physics.sensor.kinds import Kind, Reading, Sensor
from physics.trace.trace import Number, Truth, absolute, clip, is_zero, number, where


def velocity(derived: Derived, at: Frame) -> Motion:
  """Return angular and linear velocity of a frame in world axes."""
  motion = derived.smooth.velocity[at.body]
  return Motion(motion.angular, motion.at(at.position))


def acceleration(derived: Derived, at: Frame) -> Motion:
  """Return angular and linear acceleration of a frame in world axes, gravity included."""
  motion, turn = derived.accelerations[at.body], velocity(derived, at)
  return Motion(motion.angular, motion.at(at.position) + cross(turn.angular, turn.linear))


def holding_force(derived: Derived, at: Frame) -> Force:
  """Return the parent's force on the frame's body, its torque about the frame, in world axes."""
  return derived.internal_forces[at.body].moved(derived.centers[at.body] - at.position)


def is_inside(model: Model, site: int, point: Vector) -> Truth:
  """Return whether a point, given in a site's frame, lies inside the site's shape."""
  x, y, z = point
  a, b, c = (number(size) for size in model.site_size[site])
  kind = model.site_type[site]
  if kind == SPHERE:
    return dot(point, point) < a * a
  if kind == CAPSULE:
    beyond = z - clip(z, -b, b)
    return x * x + y * y + beyond * beyond < a * a
  if kind == ELLIPSOID:
    return x * x / (a * a) + y * y / (b * b) + z * z / (c * c) < 1.0
  if kind == CYLINDER:
    return (absolute(z) < b) & (x * x + y * y < a * a)
  return (absolute(x) < a) & (absolute(y) < b) & (absolute(z) < c)


def _position(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  at, reference = sensor.frame(derived), sensor.reference_frame(derived)
  return reference.rotation.transposed @ at.offset(reference) if reference else at.world


def _rotation(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  at, reference = sensor.frame(derived), sensor.reference_frame(derived)
  turn = reference.quaternion.conjugate * at.quaternion if reference else at.quaternion
  return turn.components


def _axis(column: int) -> Reading:
  def reading(derived: Derived, sensor: Sensor) -> Sequence[Number]:
    axis, reference = sensor.frame(derived).rotation.column(column), sensor.reference_frame(derived)
    return reference.rotation.transposed @ axis if reference else axis

  return reading


def _relative_velocity(derived: Derived, sensor: Sensor) -> Motion:
  """Return the velocity relative to the reference frame, which may rotate, in the reference's axes."""
  at, reference = sensor.frame(derived), sensor.reference_frame(derived)
  motion = velocity(derived, at)
  if not reference:
    return motion
  seen = motion - velocity(derived, reference)
  turning = cross(at.offset(reference), velocity(derived, reference).angular)
  inverse = reference.rotation.transposed
  return Motion(inverse @ seen.angular, inverse @ (seen.linear + turning))


def _inside_site(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  (kind, index), model, at = sensor.target, sensor.model, sensor.frame(derived)
  site = frame(model, derived.poses, *sensor.reference)
  # A body without mass is measured at the centre of mass of its subtree.
  if kind == BODY and is_zero(model.body_mass[index]):
    at = replace(at, position=derived.subtree_centers[index])
  inside = is_inside(model, sensor.reference[1], site.rotation.transposed @ at.offset(site))
  return [where(inside, 1.0, 0.0)]


def _projection(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  """Return the pixel of a site in a camera's image, from the upper left corner on; it may lie outside."""
  seen_from = sensor.reference[1]
  camera = camera_frame(derived.model, derived.poses, seen_from, lambda: derived.subtree_centers)
  x, y, z = camera.rotation.transposed @ sensor.frame(derived).offset(camera)
  away = where(absolute(z) < MINVAL, where(z < 0.0, -MINVAL, MINVAL), z)
  (width, height), (across, up) = (
    [number(value) for value in field[seen_from]]
    for field in (sensor.model.cam_resolution, sensor.model.cam_focal)
  )
  return [0.5 * width - across * (x / away), 0.5 * height + up * (y / away)]


def _in_axes(read: Callable[[Derived, Frame], Vector]) -> Reading:
  """Return the reading of a vector in the axes of the sensor's frame."""
  return lambda derived, sensor: (
    sensor.frame(derived).rotation.transposed @ read(derived, sensor.frame(derived))
  )


FRAME_READINGS: dict[Kind, Reading] = {
  Kind.FRAMEPOS: _position,
  Kind.FRAMEQUAT: _rotation,
  Kind.FRAMEXAXIS: _axis(0),
  Kind.FRAMEYAXIS: _axis(1),
  Kind.FRAMEZAXIS: _axis(2),
  Kind.FRAMELINVEL: lambda d, s: _relative_velocity(d, s).linear,
  Kind.FRAMEANGVEL: lambda d, s: _relative_velocity(d, s).angular,
  Kind.FRAMELINACC: lambda d, s: acceleration(d, s.frame(d)).linear,
  Kind.FRAMEANGACC: lambda d, s: acceleration(d, s.frame(d)).angular,
  Kind.INSIDESITE: _inside_site,
  Kind.CAMPROJECTION: _projection,
  Kind.GYRO: _in_axes(lambda d, at: velocity(d, at).angular),
  Kind.VELOCIMETER: _in_axes(lambda d, at: velocity(d, at).linear),
  Kind.ACCELEROMETER: _in_axes(lambda d, at: acceleration(d, at).linear),
  Kind.MAGNETOMETER: _in_axes(lambda d, _: vector(d.model.magnetic)),
  Kind.FORCE: _in_axes(lambda d, at: holding_force(d, at).force),
  Kind.TORQUE: _in_axes(lambda d, at: holding_force(d, at).torque),
}
