"""Kinds of sensors, and the record of one sensor: its kind, elements and options."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from physics.derived import Derived
from physics.dynamics.camera_frame import camera_frame
from physics.dynamics.frame import CAMERA, Frame, frame
from physics.model.model import Model
from physics.trace.trace import Number, number


class Kind(IntEnum):
  """The sensors that the engine computes (mjtSensor)."""

  TOUCH = 0
  ACCELEROMETER = 1
  VELOCIMETER = 2
  GYRO = 3
  FORCE = 4
  TORQUE = 5
  MAGNETOMETER = 6
  RANGEFINDER = 7
  CAMPROJECTION = 8
  JOINTPOS = 9
  JOINTVEL = 10
  TENDONPOS = 11
  TENDONVEL = 12
  ACTUATORPOS = 13
  ACTUATORVEL = 14
  ACTUATORFRC = 15
  JOINTACTFRC = 16
  TENDONACTFRC = 17
  BALLQUAT = 18
  BALLANGVEL = 19
  JOINTLIMITPOS = 20
  JOINTLIMITVEL = 21
  JOINTLIMITFRC = 22
  TENDONLIMITPOS = 23
  TENDONLIMITVEL = 24
  TENDONLIMITFRC = 25
  FRAMEPOS = 26
  FRAMEQUAT = 27
  FRAMEXAXIS = 28
  FRAMEYAXIS = 29
  FRAMEZAXIS = 30
  FRAMELINVEL = 31
  FRAMEANGVEL = 32
  FRAMELINACC = 33
  FRAMEANGACC = 34
  SUBTREECOM = 35
  SUBTREELINVEL = 36
  SUBTREEANGMOM = 37
  INSIDESITE = 38
  GEOMDIST = 39
  GEOMNORMAL = 40
  GEOMFROMTO = 41
  CONTACT = 42
  E_POTENTIAL = 43
  E_KINETIC = 44
  CLOCK = 45


REAL, POSITIVE = range(2)  # mjtDataType; a cutoff limits the first on both sides, the second from above


@dataclass(frozen=True)
class Sensor:
  """The record of one sensor of a model."""

  model: Model
  kind: Kind
  target: tuple[int, int]  # type (mjtObj) and number of the element that it is attached to
  reference: tuple[int, int]  # its frame of reference, or a second target; number -1: the world, or none
  size: int  # number of values
  options: tuple[int, ...]  # bits of the fields that a ray or a contact reports; reduction of contacts
  cutoff: Number

  @staticmethod
  def of(model: Model, index: int) -> "Sensor":
    """Read a sensor's record."""
    fields = ("objtype", "objid", "reftype", "refid", "dim", "type")
    objtype, objid, reftype, refid, size, kind = (int(getattr(model, f"sensor_{f}")[index]) for f in fields)
    options = tuple(model.sensor_intprm[index].tolist())
    cutoff = number(model.sensor_cutoff[index])
    return Sensor(model, Kind(kind), (objtype, objid), (reftype, refid), size, options, cutoff)

  @property
  def id(self) -> int:
    """Number of the element that the sensor is attached to."""
    return self.target[1]

  def frame(self, derived: Derived) -> Frame:
    """Return the frame that the sensor is attached to."""
    return _frame(derived, *self.target)

  def reference_frame(self, derived: Derived) -> Frame | None:
    """Return the frame in which the sensor measures; None: the world's."""
    return _frame(derived, *self.reference) if self.reference[1] >= 0 else None


def _frame(derived: Derived, kind: int, index: int) -> Frame:
  if kind == CAMERA:
    return camera_frame(derived.model, derived.poses, index, lambda: derived.subtree_centers)
  return frame(derived.model, derived.poses, kind, index)


Reading = Callable[[Derived, Sensor], Sequence[Number]]
