"""Unitree's Go2 and G1, and the dry run with a simulated one that speaks the same messages."""

import dataclasses
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any

import numpy as np

from gpurobot.robot.interface import Command, State
from gpurobot.robot.udp import SimulatedProcess
from gpurobot.robot.unitree_messages import MOTORS, Link
from gpurobot.settings.config import ConfigError, option

PROGRAM = "from gpurobot.robot import simulated_unitree as own; own.simulated.main(own.speak)"
LOOPBACK = "lo"
ENABLED = 1  # mode of a motor that follows commands


class Model(StrEnum):
  """Robot."""

  go2 = "go2"
  g1 = "g1"


PACKAGES = {Model.go2: "unitree_go", Model.g1: "unitree_hg"}  # of the messages


@dataclasses.dataclass
class Unitree:
  """Robot of Unitree."""

  model: Model = option(Model.go2, "go2, or g1 with 29 motors")
  interface: str = option(LOOPBACK, "network interface to the robot, as eth0; lo: this machine alone")
  domain: int = option(0, "its DDS domain", low=0, high=232)
  simulated: bool = option(False, "dry run: MuJoCo speaks the robot's messages on the loopback (sim.*)")


class UnitreeRobot:
  """Low-level client of a robot, with the interface `Robot`."""

  def __init__(
    self,
    settings: Unitree,
    wanted: Collection[str],
    simulate: Callable[[Mapping[str, Any]], SimulatedProcess],
  ) -> None:
    """Connect; joints are called as in `wanted`, with the ending _joint or without.

    `simulate` starts the process of a dry run. Raises ConfigError without cyclonedds or the interface.
    """
    if settings.simulated and settings.interface != LOOPBACK:
      raise ConfigError(f"unitree.interface={settings.interface}: a simulated robot is on {LOOPBACK} alone")
    package = PACKAGES[settings.model]
    tag = uuid.uuid4().hex if settings.simulated else ""  # a simulated robot meets no other program
    self.joints = [f"{name}_joint" if f"{name}_joint" in wanted else name for name in MOTORS[package]]
    self._link = Link(package, "LowCmd_", "LowState_", (settings.interface, settings.domain, tag))
    own = {"package": package, "network": (settings.interface, settings.domain, tag)}
    self._process = simulate({"unitree": own}) if settings.simulated else None
    self._newest: State | None = None
    self._start = time.perf_counter()
    if settings.model is Model.go2:
      self._link.written["head"], self._link.written["level_flag"] = (0xFE, 0xEF), 0xFF  # low level

  def read(self) -> State | None:
    """Return the newest message so far, without waiting; None before the first."""
    record = self._link.newest()
    sent = 0.0 if record is None else 1e-3 * float(record["tick"]) or self.now()  # unitree_mujoco counts none
    if record is None or (self._newest and sent == self._newest.time):
      return self._newest
    if "mode_machine" in self._link.written.dtype.fields:
      self._link.written["mode_machine"] = record["mode_machine"]  # a G1 ignores commands with another one
    motors, imu = record["motor_state"][: len(self.joints)], record["imu_state"]
    angles, speeds, torques = (motors[name].astype(np.float64) for name in ("q", "dq", "tau_est"))
    quaternion, gyro = (imu[name].astype(np.float64) for name in ("quaternion", "gyroscope"))
    temperatures = motors["temperature"].reshape(len(motors), -1).max(-1).astype(np.float64)
    self._newest = State(sent, self.now(), angles, speeds, torques, quaternion, gyro, temperatures)
    return self._newest

  def write(self, command: Command) -> None:
    """Send a command."""
    motors = self._link.written["motor_cmd"][: len(self.joints)]
    motors["mode"], motors["q"], motors["kp"], motors["kd"] = ENABLED, command.targets, command.kp, command.kd
    self._link.write()

  def now(self) -> float:
    """Return the controller's clock [s]."""
    return time.perf_counter() - self._start

  def wait(self, until: float) -> None:
    """Wait for a time of the controller's clock [s]."""
    time.sleep(max(0.0, until - self.now()))

  def close(self) -> str:
    """End the connection; return a line about the run, or ""."""
    self._link.close()
    refused = self._link.refused
    lines = [f"{refused} messages of the robot had a wrong checksum, and were ignored"] if refused else []
    return "\n".join(filter(None, [*lines, self._process.close() if self._process else ""]))
