"""Robot of `simulated.py`: its process, and the packets to and from it."""

import contextlib
import dataclasses
import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpurobot.device import process
from gpurobot.robot.interface import Command, Floats, Mode, State
from gpurobot.robot.simulated import HOST, LARGEST, Packet
from gpurobot.settings.config import ConfigError, option
from physics.save import save_model
from physics.urdf import ENDINGS, read_urdf

PROGRAM = "from gpurobot.robot import simulated; simulated.main()"
PATIENCE, TRIES = 2.0, 20  # wait for an answer of the process [s], and how often


@dataclasses.dataclass
class Simulation:
  """Simulated robot and its defects."""

  model: str | None = option(None, "its file, MJCF or URDF; null: the export's robot.xml")
  realtime: bool = option(
    True, "simulate in real time; otherwise time stands still while the policy computes"
  )
  step: float = option(0.001, "physics step", "s", low=1e-4, high=0.01)
  rate: float = option(500.0, "rate of the robot's messages", "Hz", low=1)
  noise: float = option(1.0, "noise of its sensors; 1: of good ones", low=0)
  delay: float = option(0.002, "delay of its messages, and of commands to it", "s", low=0)
  loss: float = option(0.0, "share of the messages and commands that are lost", low=0, high=1)
  torque: float = option(1.0, "its torque limits, as a share of the file's", low=0)
  friction: float = option(0.0, "friction torque of each joint beside the file's", "N m", low=0)
  start_angle: float = option(0.1, "largest offset of a joint from home at the start", "rad", low=0)
  hold: bool = option(True, "hold the trunk until the policy acts, as a gantry does")
  seed: int = option(0, "seed of noise and loss", low=0)


class SimulatedProcess:
  """Process of a simulated robot."""

  def __init__(
    self, settings: Simulation, model: Path, pose: Mapping[str, Any], program: str = PROGRAM
  ) -> None:
    """Start the robot of a file: its joints at `home` [rad] by name of the pose, its free joint at `root`.

    Raises ConfigError if the file has no such robot.
    """
    with tempfile.TemporaryDirectory() as scratch:
      given = dataclasses.asdict(settings) | {"model": str(_readable(model, Path(scratch))), **pose}
      words, variables = process.python("-c", program, json.dumps(given))
      pipe = subprocess.PIPE
      self.popen = subprocess.Popen(
        words, env=variables, stdin=pipe, stdout=pipe, text=True, start_new_session=True
      )  # Ctrl-C in the terminal is for the controller alone
      assert self.popen.stdout is not None
      self.answer: dict[str, Any] = json.loads(self.popen.stdout.readline() or "{}")  # it has read its file
    if "joints" not in self.answer:
      self.close()
      raise ConfigError(f"sim.model={model}: {self.answer.get('error', 'its process has ended')}")

  def close(self) -> str:
    """End the process; return a line about the robot's way, or ""."""
    try:
      text, _ = self.popen.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
      self.popen.kill()
      text, _ = self.popen.communicate()
    if not text:
      return ""
    answer = json.loads(text)
    ahead, left = answer["way"]
    fallen = "" if answer["upright"] > 0.5 else ", and lies"
    return f"the simulated robot is {ahead:.2f} m ahead and {left:.2f} m to the left of its start{fallen}"


class UdpRobot:
  """Client of a simulated robot, with the interface `Robot`."""

  def __init__(self, settings: Simulation, model: Path, pose: Mapping[str, Any]) -> None:
    """Start the robot of a file in a pose, as `SimulatedProcess` does."""
    self._process = SimulatedProcess(settings, model, pose)
    self.joints: list[str] = self._process.answer["joints"]
    self._link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    self._link.connect((HOST, self._process.answer["port"]))
    self._start, self._time = time.perf_counter(), None if settings.realtime else 0.0
    self._newest: State | None = None
    self.write(Command(Mode.damp, *np.zeros((3, len(self.joints)))))  # tells the robot where to answer

  def read(self) -> State | None:
    """Return the newest message so far, without waiting; None before the first."""
    self._link.settimeout(0)
    while (numbers := self._receive()) is not None:
      self._take(numbers)
    return self._newest

  def write(self, command: Command) -> None:
    """Send a command."""
    self._send(Packet.command, [command.mode], command.targets, command.kp, command.kd)

  def now(self) -> float:
    """Return the controller's clock [s]."""
    return time.perf_counter() - self._start if self._time is None else self._time

  def wait(self, until: float) -> None:
    """Wait for a time of the controller's clock [s]; in simulated time, let the robot go on until then."""
    if self._time is None:
      time.sleep(max(0.0, until - self.now()))
      return
    self._link.settimeout(PATIENCE)
    self._time = max(self._time, until)
    for _ in range(TRIES):
      self._send(Packet.advance, [self._time])
      while (numbers := self._receive()) is not None:
        if numbers[0] == Packet.advanced and numbers[1] == self._time:
          return
        self._take(numbers)
      if self._process.popen.poll() is not None:
        break
    raise ConnectionError("the simulated robot does not answer")

  def close(self) -> str:
    """End the robot's process; return a line about its way, or ""."""
    self._link.close()
    return self._process.close()

  def _send(self, *parts: Any) -> None:
    numbers = [np.atleast_1d(np.asarray(part, np.float64)) for part in parts]
    with contextlib.suppress(ConnectionRefusedError):  # its process has ended: it falls silent
      self._link.send(np.concatenate(numbers).tobytes())

  def _receive(self) -> Floats | None:
    """Return a packet; None if there is none."""
    try:
      return np.frombuffer(self._link.recv(LARGEST))
    except (BlockingIOError, TimeoutError, ConnectionRefusedError):  # the last: its process has ended
      return None

  def _take(self, numbers: Floats) -> None:
    n = len(self.joints)
    if numbers[0] != Packet.state or len(numbers) != 9 + 3 * n:
      return
    if self._newest is None or numbers[1] > self._newest.time:
      angles, speeds, torques, quaternion, gyro = np.split(numbers[2:], [n, 2 * n, 3 * n, 3 * n + 4])
      self._newest = State(float(numbers[1]), self.now(), angles, speeds, torques, quaternion, gyro)


def _readable(model: Path, scratch: Path) -> Path:
  """Return the robot's file as MJCF, absolute."""
  if not model.is_file():
    raise ConfigError(f"there is no robot file '{model}'")
  if model.suffix.lower() not in ENDINGS:
    return model.resolve()
  save_model(read_urdf(model, floating=True), scratch / "robot.xml")
  return scratch / "robot.xml"
