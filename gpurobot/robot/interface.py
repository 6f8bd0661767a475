"""Interface of a robot: messages from its sensors, commands to its servos, and a clock."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

import numpy as np

from gpurobot.deploy.on_robot import Floats, gravity


class Mode(IntEnum):
  """Stage of a run, as a robot is told."""

  damp = 0  # no targets: the servos brake
  start = 1  # from the present pose to home
  act = 2  # the policy commands


@dataclass(frozen=True)
class State:
  """Message of a robot, with its joints in its own order."""

  time: float  # robot's clock when its sensors were read [s]
  received: float  # controller's clock when the message was read [s]
  angles: Floats  # [joints] [rad]
  speeds: Floats  # [joints] [rad/s]
  torques: Floats  # [joints] [N m], or [0] of a robot that reports none
  quaternion: Floats  # [4] w, x, y, z; from the axes of the IMU to the world's
  gyro: Floats  # [3] in the axes of the IMU [rad/s]
  temperatures: Floats = field(default_factory=lambda: np.zeros(0))  # [joints] of the motors [°C], or [0]

  @property
  def gravity(self) -> Floats:
    """Unit vector downwards in the axes of the IMU [3]."""
    return gravity(self.quaternion)


@dataclass(frozen=True)
class Command:
  """Command to a robot's servos, in its order of joints: torque = kp * (target - angle) - kd * speed."""

  mode: Mode
  targets: Floats  # [joints] [rad]
  kp: Floats  # [joints] [N m/rad]
  kd: Floats  # [joints] [N m s/rad]


class Robot(Protocol):
  """A robot, simulated or real."""

  @property
  def joints(self) -> Sequence[str]:
    """Names of the joints, in the order of messages and commands."""

  def read(self) -> State | None:
    """Return the newest message so far, without waiting; None before the first."""

  def write(self, command: Command) -> None:
    """Send a command."""

  def now(self) -> float:
    """Return the controller's clock [s]."""

  def wait(self, until: float) -> None:
    """Wait for a time of the controller's clock [s]."""

  def close(self) -> str:
    """End the connection; return a line about the run, or ""."""
