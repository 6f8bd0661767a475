"""Delayed controls, which act some time after they were given, and what delayed and periodic sensors store.

Every time step stores the controls given, and the numbers that delayed sensors measure. A delayed control is
interpolated between the samples of one time step ago, two time steps ago, and so on, and so is a delayed
sensor. The oldest sample counts for all times before it, the newest for all times after it.

Source: MuJoCo's manual, chapter Modeling, section Delays; XML Reference, actuator/general, attributes
nsample, interp and delay. MuJoCo compares accumulated times, whose rounding can move a delay of whole time
steps to the next sample; here such a delay is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from physics.algebra.spatial import dot
from physics.model.model import Floats, Model
from physics.trace.trace import Array, Number, Program

HOLD, LINEAR, CUBIC = range(3)  # mju_historyRead's kinds of interpolation
NEAR = 1e-6  # [time steps] a delay this close to a whole number counts as whole
Choose = Callable[
  [Sequence[float]], Number
]  # returns the value of the integrator's present stage, out of one per stage


def delayed_controls(model: Model) -> dict[int, int]:
  """Return the actuator of each control that acts with a delay, by control."""
  return {
    int(model.actuator_ctrladr[actuator]) + k: actuator
    for actuator in range(model.nactuator)
    if model.actuator_delay[actuator] > 0.0
    for k in range(int(model.actuator_ctrlnum[actuator]))
  }


def past_rows(model: Model) -> int:
  """Return the number of stored past controls: `nsample` for each delayed control."""
  return sum(int(model.actuator_history[actuator, 0]) for actuator in delayed_controls(model).values())


def delayed_sensors(model: Model) -> list[int]:
  """Return the sensors that show what they measured some time ago."""
  return np.flatnonzero(model.sensor_supported & (model.sensor_delay > 0.0)).tolist()


def periodic_sensors(model: Model) -> list[int]:
  """Return the sensors that measure once in an interval."""
  return np.flatnonzero(model.sensor_supported & (model.sensor_interval[:, 0] > 0.0)).tolist()


def past_sensor_rows(model: Model) -> int:
  """Return the number of stored past measurements: `nsample` for each number of a delayed sensor."""
  sensors = delayed_sensors(model)
  return int((model.sensor_history[sensors, 0] * model.sensor_dim[sensors]).sum())


def held_sensor_rows(model: Model) -> int:
  """Return the number of stored numbers of periodic sensors: time until the next, last measurement."""
  return sum(1 + int(model.sensor_dim[sensor]) for sensor in periodic_sensors(model))


def held_at_start(model: Model) -> list[float]:
  """Return what periodic sensors hold after a reset [rows]: the wait for the first measurement, and zeros."""
  held = []
  for sensor in periodic_sensors(model):
    period, phase = model.sensor_interval[sensor].tolist()
    first = period + phase if phase else 0.0
    held += [first / model.timestep, *[0.0] * int(model.sensor_dim[sensor])]
  return held


def acting_controls(
  model: Model, past: Array, ctrl: list[Number], offsets: Sequence[float], choose: Choose
) -> list[Number]:
  """Return the controls [nu] that act now: those given now or one delay ago (`mju_historyRead`).

  `offsets` are the times of the integrator's stages [time steps] after the start of the present one.
  """
  acting, row = list(ctrl), 0
  for control, actuator in delayed_controls(model).items():
    count, kind = model.actuator_history[actuator].tolist()
    delay = float(model.actuator_delay[actuator]) / model.timestep
    weights = [sample_weights(count, kind, delay - offset) for offset in offsets]
    acting[control] = dot(map(choose, zip(*weights, strict=True)), past.read(row, count))
    row += count
  return acting


def remember(program: Program, model: Model, past: Array, ctrl: list[Number]) -> None:
  """Drop the oldest of the past controls and append `ctrl` [nu] (MuJoCo's `mju_historyInsert`)."""
  drop_oldest(program, past)
  row = 0
  for control, actuator in delayed_controls(model).items():
    row += int(model.actuator_history[actuator, 0])
    past[row - 1] = ctrl[control]


def drop_oldest(program: Program, past: Array) -> None:
  """Move all samples one row ahead; the last row of each block awaits the newest."""
  if len(past) > 1:
    with program.loop(len(past) - 1) as i:
      past[i] = past[i + 1]


def sample_weights(count: int, kind: int, age: float) -> Floats:
  """Return the weights [count], oldest first, that interpolate samples of age `count`, ..., 2, 1 at an age.

  The cubic is Hermite's with the slopes of central differences, zero at the ends (Catmull and Rom 1974).
  """
  samples, position = np.eye(count), float(np.clip(count - age, 0, count - 1))
  before, after = math.floor(position + NEAR), math.ceil(position - NEAR)
  if before >= after or kind == HOLD:
    return samples[before]
  x, step = position - before, samples[after] - samples[before]
  if kind == LINEAR:
    return samples[before] + x * step
  first, last = (
    (samples[k + 1] - samples[k - 1]) / 2 if 0 < k < count - 1 else np.zeros(count) for k in (before, after)
  )
  bend = (1 - x) * (first - step) - x * (last - step)
  return samples[before] + x * step + x * (1 - x) * bend
