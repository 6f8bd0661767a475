"""Log of a run: one .npz file with the numbers of every control step."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpurobot.robot.controller import Tick
from gpurobot.robot.interface import Command, Floats, State


class Recorder:
  """Numbers of the control steps of a run."""

  def __init__(self, manifest: str, joints: list[str]) -> None:
    """Record the policy of a `manifest`, JSON, on a robot with `joints`."""
    self._facts: dict[str, Any] = {"manifest": manifest, "robot.joints": np.array(joints)}
    self._rows: list[Mapping[str, Any]] = []

  def add(self, time: float, state: State, tick: Tick, command: Command, servos: list[int]) -> None:
    """Add a control step at a time of the controller's clock [s]; `servos` are places among the joints."""
    gains: Floats = np.stack([command.kp[servos], command.kd[servos]])
    self._rows.append(
      {
        "time": time,
        "sensor_time": state.time,
        **{f"sensor.{name}": numbers for name, numbers in tick.sensors.items()},
        "obs": tick.obs,
        "action": tick.action,
        "ctrl": command.targets[servos],
        "gains": gains,
        "robot.angles": state.angles,
        "robot.speeds": state.speeds,
        "robot.torques": state.torques,
        "robot.quaternion": state.quaternion,
        "robot.gyro": state.gyro,
      }
    )

  def write(self, path: Path, reason: str) -> None:
    """Write the file, with the reason why the run ended; of a run without the policy, no more than that."""
    columns: dict[str, Any] = {
      name: np.array([row[name] for row in self._rows]) for name in (self._rows or [{}])[0]
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **self._facts, **columns, reason=reason)
