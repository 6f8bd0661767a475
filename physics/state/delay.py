"""Delayed controls, which act some time after they were given, and samples of delayed and periodic sensors.

Every time step stores the controls given, and the numbers that delayed sensors measure; periodic ones measure
less often. A delayed control is interpolated between the samples of one time step ago, two time steps ago,
and so on, and a delayed sensor between its samples. The oldest sample counts for all times before it, the
newest for all times after it.

Source: MuJoCo's manual, chapter Modeling, section Delays; XML Reference, actuator/general, attributes
nsample, interp and delay. MuJoCo compares accumulated times: their rounding can move a delay of whole time
steps to the next sample; here such a delay is exact.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from physics.algebra.spatial import dot
from physics.model.model import Model
from physics.trace.trace import Array, Number, Program, Truth, clip, negate, where

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


def remembering_sensors(model: Model) -> dict[int, int]:
  """Return the number of samples of each value that a sensor keeps, by sensor: `nsample`, or one."""
  delayed = model.sensor_delay > 0.0
  kept = np.flatnonzero(model.sensor_supported & (delayed | (model.sensor_interval[:, 0] > 0.0)))
  return {sensor: int(model.sensor_history[sensor, 0]) if delayed[sensor] else 1 for sensor in kept.tolist()}


def periodic_sensors(model: Model) -> list[int]:
  """Return the sensors that measure once in an interval."""
  return np.flatnonzero(model.sensor_supported & (model.sensor_interval[:, 0] > 0.0)).tolist()


def past_sensor_rows(model: Model) -> int:
  """Return the number of stored past measurements."""
  return sum(count * int(model.sensor_dim[sensor]) for sensor, count in remembering_sensors(model).items())


def waits_at_start(model: Model) -> list[float]:
  """Return the time [time steps] until each periodic sensor measures first after a reset."""
  intervals = [model.sensor_interval[sensor].tolist() for sensor in periodic_sensors(model)]
  return [(period + phase if phase else 0.0) / model.timestep for period, phase in intervals]


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
    ages = [float(age) for age in range(count, 0, -1)]
    weights = [sample_weights(ages, kind, delay - offset) for offset in offsets]
    acting[control] = dot(map(choose, zip(*weights, strict=True)), past.read(row, count))
    row += count
  return acting


def remember(program: Program, model: Model, past: Array, ctrl: list[Number]) -> None:
  """Drop the oldest of the past controls and append `ctrl` [nu] (MuJoCo's `mju_historyInsert`)."""
  if len(past) > 1:
    with program.loop(len(past) - 1) as i:
      past[i] = past[i + 1]
  row = 0
  for control, actuator in delayed_controls(model).items():
    row += int(model.actuator_history[actuator, 0])
    past[row - 1] = ctrl[control]


def sample_weights(ages: Sequence[Number], kind: int, age: Number) -> list[Number]:
  """Return the weights of samples of some ages, oldest first, that interpolate them at an age."""
  taken: list[Truth] = [True, *(age <= each + NEAR for each in ages[1:])]
  weights: list[Number] = [0.0] * len(ages)
  for k, is_taken in enumerate(taken):
    is_last = is_taken & (negate(taken[k + 1]) if k + 1 < len(ages) else True)
    for sample, weight in _between(ages, k, kind, age):
      weights[sample] = weights[sample] + where(is_last, weight, 0.0)
  return weights


def _between(ages: Sequence[Number], k: int, kind: int, age: Number) -> Iterator[tuple[int, Number]]:
  """Yield samples and their weights at an age between sample k's and the next one's.

  The cubic is Hermite's with the slopes of central differences, zero at the ends (Catmull and Rom 1974).
  """
  if kind == HOLD or k + 1 == len(ages):
    yield k, 1.0
    return
  span = ages[k] - ages[k + 1]
  x = clip((ages[k] - age) / span, 0.0, 1.0)
  yield from ((k, 1.0 - x), (k + 1, x))
  if kind == CUBIC:
    for end, bend in ((k, x * (1.0 - x) * (1.0 - x)), (k + 1, x * x * (x - 1.0))):
      yield from ((k, bend), (k + 1, -bend))
      if 0 < end < len(ages) - 1:
        slope = bend * span / (ages[end - 1] - ages[end + 1])
        yield from ((end - 1, -slope), (end + 1, slope))
