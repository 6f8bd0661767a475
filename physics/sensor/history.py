"""Sensors with a memory: delayed ones, which show old measurements, and periodic ones, which rest between.

Source: MuJoCo's manual, chapter Modeling, section Delays; XML Reference, sensor, attributes nsample, interp,
delay and interval. As with delayed controls, a time that is a whole number of time steps is exact here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from physics.algebra.spatial import dot
from physics.derived import Derived
from physics.model.model import Model
from physics.state.delay import delayed_sensors, drop_oldest, periodic_sensors, sample_weights
from physics.trace.trace import Number, where

Measure = Callable[[Derived, int], Sequence[Number]]  # returns what a sensor measures now
NEAR = 1e-4  # [time steps] a wait this short is over


def shown(derived: Derived, sensor: int, measure: Measure) -> Sequence[Number]:
  """Return the numbers that a sensor shows now."""
  model = derived.model
  if sensor in delayed_sensors(model):
    return _delayed(derived, sensor)
  if sensor in periodic_sensors(model):
    wait, *last = derived.memory["held_sensordata"].read(*_held_rows(model, sensor))
    now = measure(derived, sensor)
    return [where(wait < NEAR, new, old) for new, old in zip(now, last, strict=True)]
  return measure(derived, sensor)


def remember_sensors(derived: Derived, measure: Measure) -> None:
  """Store the present measurements of delayed sensors, and of periodic ones whose wait is over."""
  model, program = derived.model, derived.program
  if delayed_sensors(model):
    past = derived.memory["past_sensordata"]
    now = [value for sensor in delayed_sensors(model) for value in measure(derived, sensor)]
    drop_oldest(program, past)
    for (row, count), value in zip(_past_rows(model), now, strict=True):
      past[row + count - 1] = value
  for sensor in periodic_sensors(model):
    held, (start, count) = derived.memory["held_sensordata"], _held_rows(model, sensor)
    wait, *last = held.read(start, count)
    period = max(1.0, float(model.sensor_interval[sensor, 0]) / model.timestep)
    is_over = wait < NEAR
    held[start] = where(is_over, wait + period, wait) - 1.0
    with program.when_any(is_over):
      for k, (new, old) in enumerate(zip(measure(derived, sensor), last, strict=True)):
        held[start + 1 + k] = where(is_over, new, old)


def _delayed(derived: Derived, sensor: int) -> list[Number]:
  """Return what a sensor measured one delay ago, interpolated between its samples."""
  model, past = derived.model, derived.memory["past_sensordata"]
  count, kind = model.sensor_history[sensor].tolist()
  weights = sample_weights(count, kind, float(model.sensor_delay[sensor]) / model.timestep)
  before = delayed_sensors(model).index(sensor)
  first = sum(int(model.sensor_dim[other]) for other in delayed_sensors(model)[:before])
  rows = list(_past_rows(model))[first : first + int(model.sensor_dim[sensor])]
  return [dot(weights.tolist(), past.read(row, size)) for row, size in rows]


def _past_rows(model: Model) -> Iterator[tuple[int, int]]:
  """Yield first row and count of the samples of each number that a delayed sensor measures."""
  row = 0
  for sensor in delayed_sensors(model):
    count = int(model.sensor_history[sensor, 0])
    for _ in range(int(model.sensor_dim[sensor])):
      yield row, count
      row += count


def _held_rows(model: Model, sensor: int) -> tuple[int, int]:
  """Return first row and count of the numbers of a periodic sensor: wait, last measurement."""
  sensors = periodic_sensors(model)
  start = sum(1 + int(model.sensor_dim[other]) for other in sensors[: sensors.index(sensor)])
  return start, 1 + int(model.sensor_dim[sensor])
