"""Loop of a controller: soft start, policy, damping stop, and the log of every step."""

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gpurobot.robot import safety
from gpurobot.robot.controller import Controller, Tick
from gpurobot.robot.interface import Command, Floats, Mode, Robot, State
from gpurobot.robot.keyboard import Commands
from gpurobot.robot.safety import Safety, StopError
from gpurobot.settings.config import ConfigError, option


@dataclasses.dataclass
class Times:
  """Durations of the stages of a run."""

  seconds: float | None = option(10.0, "time under the policy; null: until a key is pressed", "s", low=0)
  start_seconds: float = option(2.0, "time from the present pose to home", "s", low=0)
  stop_seconds: float = option(1.0, "time of braking at the end", "s", low=0)
  connect_seconds: float = option(5.0, "longest time to wait for the robot's first message", "s", low=0)


class Loop:
  """Control steps at a fixed rate."""

  def __init__(self, robot: Robot, controller: Controller, limits: Safety, commands: Commands) -> None:
    """Connect a robot with a controller; raise ConfigError if the robot lacks a joint."""
    self.robot, self.controller, self.safety, self.commands = robot, controller, limits, commands
    self.places = controller.robot_columns(robot.joints)
    self.rows: list[dict[str, Any]] = []  # numbers of each control step of the policy, by name
    self.late: list[float] = []  # of each control step of the policy [s]
    self.busy: list[float] = []  # time that the policy took in each [s]
    self._due, self._keys = 0.0, lambda: ""
    servos = controller.servos
    middle = [[np.median(servos.kp)], [np.median(servos.kd)]]  # of joints that the policy does not move
    self._gains = np.tile(middle, len(robot.joints))
    self._gains[:, self.places["servos"]] = servos.kp, servos.kd

  def run(self, times: Times, keys: Callable[[], str]) -> str:
    """Run the stages; return why the run ended. The robot is damped in any case.

    Raises ConfigError if the robot sends no message.
    """
    first = self._first(times.connect_seconds)
    self._due, self._keys = self.robot.now(), keys
    try:
      self._start(first, times.start_seconds)
      self._act(first, math.inf if times.seconds is None else times.seconds)
    except StopError as reason:
      return str(reason)
    except KeyboardInterrupt:
      return "Ctrl-C was pressed"
    finally:
      self._stop(first, times.stop_seconds)
    return "its time was over"

  def _first(self, patience: float) -> State:
    """Return the first message of the robot."""
    end = self.robot.now() + patience
    while (state := self.robot.read()) is None:
      if self.robot.now() >= end:
        raise ConfigError(f"the robot sends no message in {patience:g} s: is it on, and connected?")
      self.robot.wait(self.robot.now() + self.controller.step_seconds)
    return state

  def _steps(self, seconds: float) -> int:
    return round(seconds / self.controller.step_seconds)

  def _tick(self) -> tuple[State, float]:
    """Wait for the next control step; return the newest message and the controller's clock, checked.

    Keys act here too.
    """
    self._due += self.controller.step_seconds
    self.robot.wait(self._due)
    now, state = self.robot.now(), self.robot.read()
    late, self._due = now - self._due, max(self._due, now - self.controller.step_seconds)
    assert state is not None  # there was one
    safety.check(self.safety, state, now, late)
    self.late.append(late)
    self.commands.press(self._keys())
    return state, now

  def _start(self, first: State, seconds: float) -> None:
    """Move to home on a straight line, with gains that grow."""
    home = first.angles.copy()
    home[self.places["servos"]] = self.controller.servos.home
    for step in range(count := self._steps(seconds)):
      self._tick()
      share = (step + 1) / count
      targets = first.angles + share * (home - first.angles)
      gain = min(1.0, 2 * share)
      self.robot.write(Command(Mode.start, targets, gain * self._gains[0], self._gains[1]))

  def _act(self, first: State, seconds: float) -> None:
    """Let the policy command."""
    servos = self.places["servos"]
    targets = first.angles.copy()
    self.late.clear()
    while len(self.busy) < seconds / self.controller.step_seconds - 1e-9:
      state, now = self._tick()
      begun = time.perf_counter()
      tick = self.controller.step(state, self.places, self.commands.values)
      for name in ("obs", "action", "ctrl"):
        if not np.isfinite(getattr(tick, name)).all():
          raise StopError(f"a number of the policy is not finite: {name}")
      targets = targets.copy()
      targets[servos] = safety.limited(
        self.safety, self.controller.servos, tick.ctrl, state.angles[servos], state.speeds[servos]
      )
      command = Command(Mode.act, targets, *self._gains)
      self.robot.write(command)
      self.busy.append(time.perf_counter() - begun)
      self._record(now, state, tick, command)

  def _stop(self, first: State, seconds: float) -> None:
    """Damp all joints, whatever the robot reports."""
    zeros: Floats = np.zeros_like(first.angles)
    command = Command(Mode.damp, zeros, zeros, np.full_like(zeros, self.safety.damping))
    start = self.robot.now()
    for step in range(max(1, self._steps(seconds))):
      self.robot.write(command)
      self.robot.wait(start + (step + 1) * self.controller.step_seconds)

  def _record(self, now: float, state: State, tick: Tick, command: Command) -> None:
    servos = self.places["servos"]
    sensors = {f"sensor.{name}": numbers for name, numbers in tick.sensors.items()}
    parts = {name: numbers for name in safety.PARTS if len(numbers := getattr(state, name))}
    self.rows.append(
      {"time": now, "sensor_time": state.time, **sensors, "obs": tick.obs, "action": tick.action}
      | {"ctrl": command.targets[servos], "gains": np.stack([command.kp[servos], command.kd[servos]])}
      | {f"robot.{name}": numbers for name, numbers in parts.items()}
    )

  def write(self, path: Path, reason: str) -> None:
    """Write the log as .npz: a row for each step of the policy, and why the run ended."""
    names = [name for name in (self.rows or [{}])[0] if all(name in row for row in self.rows)]
    columns: dict[str, Any] = {name: np.array([row[name] for row in self.rows]) for name in names}
    columns |= {"manifest": self.controller.text, "robot.joints": list(self.robot.joints), "reason": reason}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **columns)

  def jitter(self) -> str:
    """Return a line about the times of the policy's control steps."""
    if not self.late:
      return "the policy did not act"
    late, busy = 1e3 * np.array(self.late), 1e3 * np.array([*self.busy, 0.0])
    step = 1e3 * self.controller.step_seconds
    return (
      f"{len(self.busy)} control steps of {step:g} ms, late by {late.mean():.2f} ms in the mean, "
      f"{np.quantile(late, 0.99):.2f} ms in 99 of 100, at most {late.max():.2f} ms; the policy took "
      f"{busy.mean():.2f} ms, at most {busy.max():.2f} ms"
    )
