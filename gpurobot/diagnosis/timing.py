"""Clocks of a log: control rate, drift, age of the sensors."""

from collections.abc import Iterator

import numpy as np

from gpurobot.diagnosis.finding import Finding
from gpurobot.diagnosis.log import Log

RATE = 0.03  # relative difference of a control step that counts
DRIFT = 0.002  # relative difference of two clocks that counts
APART = 1.0  # clocks that differ by more have no common origin [s]


def step(log: Log) -> float:
  """Return the control step of a log [s]; the export's if it has no times."""
  for key in ("time", "sensor_time"):
    if log.has(key):
      return float(np.median(np.diff(log[key])))
  return float(log.facts["rate"]["step [s]"])


def clocks(log: Log) -> Iterator[Finding]:
  """Yield a control rate that differs, and clocks that drift apart."""
  wanted, own = float(log.facts["rate"]["step [s]"]), step(log)
  if abs(own / wanted - 1) > RATE:
    text = f"{1 / own:.3g} Hz, and {1 / wanted:.3g} Hz in training"
    yield Finding("rate", text, 2 + abs(np.log(own / wanted)))
  if (drift := slope(log)) is not None and abs(drift) > DRIFT:
    yield Finding("drift", f"the robot's clock gains {1e3 * drift:.3g} ms in a second", 2 + 10 * abs(drift))


def slope(log: Log) -> float | None:
  """Return how much the robot's clock gains on the controller's, relative; None if a clock is missing."""
  if not log.has("time", "sensor_time"):
    return None
  return float(np.polyfit(log["time"] - log["time"][0], log["sensor_time"], 1)[0]) - 1


def sensor_age(log: Log) -> float | None:
  """Return the mean age of the sensors at a control step [s]; None if the clocks do not tell."""
  if (drift := slope(log)) is None or abs(drift) > DRIFT:
    return None
  age = log["time"] - log["sensor_time"]
  return float(age.mean()) if 0 <= np.median(age) < APART else None
