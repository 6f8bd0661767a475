"""Sensors: the measurements in `sensordata`, by MuJoCo's definitions; like MuJoCo, the engine adds no noise.

Source: MuJoCo's XML Reference, section sensor.
"""

from collections.abc import Sequence

from physics.derived import Derived
from physics.sensor.contact_sensor import CONTACT_READINGS
from physics.sensor.distance import DISTANCE_READINGS
from physics.sensor.frame_sensor import FRAME_READINGS
from physics.sensor.history import shown
from physics.sensor.joint import JOINT_READINGS
from physics.sensor.kinds import POSITIVE, REAL, Kind, Reading, Sensor
from physics.sensor.rangefinder import RANGE_READINGS
from physics.sensor.subtree import SUBTREE_READINGS
from physics.sensor.touch import TOUCH_READINGS
from physics.trace.trace import Number, is_zero, maximum, minimum

READINGS: dict[Kind, Reading] = (
  JOINT_READINGS
  | FRAME_READINGS
  | SUBTREE_READINGS
  | DISTANCE_READINGS
  | RANGE_READINGS
  | TOUCH_READINGS
  | CONTACT_READINGS
)
UNLIMITED = (Kind.CONTACT, Kind.GEOMFROMTO)  # sensors that a cutoff does not limit


def sensordata(derived: Derived) -> list[Number]:
  """Return the numbers of all sensors [nsensordata]; zeros for sensors that the engine lacks.

  This is MuJoCo's `mj_sensorPos`, `mj_sensorVel` and `mj_sensorAcc` in one.
  """
  model = derived.model
  data: list[Number] = [0.0] * model.nsensordata
  for i in range(model.nsensor):
    if model.sensor_supported[i]:
      at = int(model.sensor_adr[i])
      data[at : at + int(model.sensor_dim[i])] = shown(derived, i, measured)
  return data


def measured(derived: Derived, index: int) -> Sequence[Number]:
  """Return a sensor's present measurement, without delay (MuJoCo's `mj_computeSensor`)."""
  sensor = Sensor.of(derived.model, index)
  values = READINGS[sensor.kind](derived, sensor)
  return _limited(sensor, int(derived.model.sensor_datatype[index]), values)


def _limited(sensor: Sensor, datatype: int, values: Sequence[Number]) -> Sequence[Number]:
  """Return the values within the sensor's cutoff."""
  if is_zero(sensor.cutoff) or datatype not in (REAL, POSITIVE) or sensor.kind in UNLIMITED:
    return values
  below = [minimum(value, sensor.cutoff) for value in values]
  return below if datatype == POSITIVE else [maximum(value, -sensor.cutoff) for value in below]
