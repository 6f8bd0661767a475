"""Limits of commands, and the watchdog that ends a run."""

import dataclasses
import math

import numpy as np

from gpurobot.robot.controller import Servos
from gpurobot.robot.interface import Floats, State
from gpurobot.settings.config import option

PARTS = ("angles", "speeds", "torques", "quaternion", "gyro", "temperatures")  # of a robot's message


class StopError(Exception):
  """The reason why a run ends, in a line."""


@dataclasses.dataclass
class Safety:
  """Limits beyond which a run ends in a damping stop, and of the commands."""

  age: float = option(0.1, "greatest age of the newest message", "s", low=0)
  late: float = option(0.1, "greatest delay of a control step", "s", low=0)
  tilt: float = option(1.0, "greatest tilt of the trunk", "rad", low=0, high=math.pi)
  speed: float = option(40.0, "greatest speed of a joint", "rad/s", low=0)
  temperature: float = option(80.0, "greatest temperature of a motor that reports one", "°C")
  torque: float | None = option(
    None,
    "greatest torque that a target asks for when it is sent, as a share of the servo's; null: no limit",
    low=0.01,
  )
  damping: float = option(2.0, "damping of the joints in a stop", "N m s/rad", low=0)


def check(safety: Safety, state: State, now: float, late: float) -> None:
  """Raise StopError if a message [s] or the loop is late, or the robot leaves its limits."""
  for name in PARTS:
    if not np.isfinite(getattr(state, name)).all():
      raise StopError(f"the robot reports a number that is not finite: {name}")
  found = {
    "age": ("its newest message is {:.3f} s old", now - state.received),
    "late": ("a control step was {:.3f} s late", late),
    "tilt": ("the trunk is tilted by {:.2f} rad", math.acos(np.clip(-state.gravity[2], -1, 1))),
    "speed": ("a joint moves at {:.1f} rad/s", float(abs(state.speeds).max())),
    "temperature": ("a motor has {:.0f} °C", float(np.max(state.temperatures, initial=-math.inf))),
  }
  for name, (text, value) in found.items():
    if not value <= (limit := getattr(safety, name)):  # nan: an IMU that has not begun sends zeros
      raise StopError(f"{text.format(value)}, more than safety.{name}={limit:g}")


def limited(safety: Safety, servos: Servos, targets: Floats, angles: Floats, speeds: Floats) -> Floats:
  """Return targets [controls] [rad] in their range, which ask for no more torque in the present state."""
  inside = np.clip(targets, servos.low, servos.high)
  if safety.torque is None:
    return inside
  reach = safety.torque * servos.torque / servos.kp
  middle = angles + servos.kd / servos.kp * speeds  # asks for no torque
  return np.clip(inside, middle - reach, middle + reach)
