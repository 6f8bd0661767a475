"""Sensors with a memory: delayed ones, which report old measurements, and periodic ones, which hold theirs.

Source: MuJoCo's manual, chapter Modeling, section Delays; XML Reference, sensor, attributes nsample, interp,
delay and interval. As with delayed controls, a time that is a whole number of time steps is exact here.
Sensors measure at the start of a time step, in Runge-Kutta's method too.
"""

from collections.abc import Callable, Sequence

from physics.algebra.spatial import dot
from physics.derived import Derived
from physics.model.model import Model
from physics.state.delay import periodic_sensors, remembering_sensors, sample_weights
from physics.trace.trace import Number, floor, where

Measure = Callable[[Derived, int], Sequence[Number]]  # returns a sensor's present measurement
NEAR = 1e-4  # [time steps] a wait this short is over


def shown(derived: Derived, sensor: int, measure: Measure) -> Sequence[Number]:
  """Return the numbers that a sensor reports now."""
  model = derived.model
  if sensor not in remembering_sensors(model):
    return measure(derived, sensor)
  first, count = _rows(model, sensor)
  past = derived.memory["past_sensordata"]
  samples = [past.read(first + k * count, count) for k in range(int(model.sensor_dim[sensor]))]
  if model.sensor_delay[sensor] > 0.0:
    kind, delay = int(model.sensor_history[sensor, 1]), float(model.sensor_delay[sensor])
    weights = sample_weights(_ages(derived, sensor), kind, delay / model.timestep)
    return [dot(weights, each) for each in samples]
  now, is_over = measure(derived, sensor), _wait(derived, sensor) < NEAR
  return [where(is_over, new, old) for new, (*_, old) in zip(now, samples, strict=True)]


def remember_sensors(derived: Derived, measure: Measure) -> None:
  """Store the present measurements of sensors with a memory, of periodic ones where their wait is over."""
  model, program = derived.model, derived.program
  for sensor in remembering_sensors(model):
    (first, count), past = _rows(model, sensor), derived.memory["past_sensordata"]
    wait = _wait(derived, sensor)
    is_over = wait < NEAR
    with program.when_any(is_over):
      values = measure(derived, sensor)
      with program.loop(count * len(values) - 1) as i:
        at = i + first
        past[at] = where(is_over, past[at + 1], past[at])
      for k, value in enumerate(values):
        newest = first + (k + 1) * count - 1
        past[newest] = where(is_over, value, past[newest])
    if sensor in periodic_sensors(model):
      place = periodic_sensors(model).index(sensor)
      derived.memory["sensor_wait"][place] = where(is_over, wait + _period(model, sensor), wait) - 1.0


def _period(model: Model, sensor: int) -> float:
  """Return the time between two measurements [time steps]."""
  return max(1.0, float(model.sensor_interval[sensor, 0]) / model.timestep)


def _wait(derived: Derived, sensor: int) -> Number:
  """Return the time until the next measurement [time steps]."""
  periodic = periodic_sensors(derived.model)
  return derived.memory["sensor_wait"][periodic.index(sensor)] if sensor in periodic else 0.0


def _ages(derived: Derived, sensor: int) -> list[Number]:
  """Return the ages of a sensor's samples [time steps], oldest first.

  A measurement that is due within a time step happens at its end.
  """
  _, count = _rows(derived.model, sensor)
  wait, period = _wait(derived, sensor), _period(derived.model, sensor)
  return [floor(k * period + NEAR - wait) for k in range(count, 0, -1)]


def _rows(model: Model, sensor: int) -> tuple[int, int]:
  """Return the first row of a sensor's samples, and the number of samples of each of its values."""
  row = 0
  for other, count in remembering_sensors(model).items():
    if other == sensor:
      break
    row += count * int(model.sensor_dim[other])
  return row, count
