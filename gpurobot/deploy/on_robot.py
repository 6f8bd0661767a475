"""Computations between a robot's message and its command, as policy.json describes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


def gravity(quaternion: Floats) -> Floats:
  """Return the unit vector downwards in the body's axes [..., 3] for quaternions w, x, y, z [..., 4]."""
  w, x, y, z = np.moveaxis(quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True), -1, 0)
  return np.stack([2 * (w * y - x * z), -2 * (w * x + y * z), 2 * (x * x + y * y) - 1], -1)


class Observer:
  """Observation of a manifest, without history."""

  def __init__(self, facts: Mapping[str, Any]) -> None:
    """Look up the columns of the sensors."""
    self.sensors = {sensor["name"]: list(sensor["columns"]) for sensor in facts["sensors"]}
    names = [(name, column) for name, columns in self.sensors.items() for column in columns]
    seen = facts["observation"]["columns"]
    self._places = [names.index((column["sensor"], column["column"])) for column in seen]
    self._scale, self._offset = (np.array([column[key] for column in seen]) for key in ("scale", "offset"))

  def __call__(self, sensors: Mapping[str, Floats]) -> Floats:
    """Return the observation [..., width] for the numbers of each sensor [..., columns]."""
    numbers = np.concatenate([sensors[name] for name in self.sensors], -1)
    return self._scale * (numbers[..., self._places] - self._offset)


def filtered(facts: Mapping[str, Any], before: Floats, action: Floats) -> Floats:
  """Return the action [actions] at the motors that follows the one `before`, by a manifest's filter."""
  known = facts["control"].get("filter")
  if known is None:
    return action
  most = np.array(np.inf if known["most"] is None else known["most"])
  return before + np.clip(known["share"] * (action - before), -most, most)


@dataclass(frozen=True)
class Servos:
  """Servos of a manifest, in the order of its controls; their ranges are inf where there are none."""

  joints: tuple[str, ...]
  kp: Floats  # [N m/rad]; 0 of an actuator that is none
  kd: Floats  # [N m s/rad]
  torque: Floats  # greatest torque [N m]
  low: Floats  # range of the targets [rad]
  high: Floats
  home: Floats  # [rad]

  @classmethod
  def of(cls, facts: Mapping[str, Any]) -> "Servos":
    """Look up joints, gains and limits of the controls."""
    known = {actuator["name"]: actuator for actuator in facts["actuators"]}
    controls = facts["control"]["controls"]
    used = [known[control["actuator"]] for control in controls]
    gains = np.array([[own.get("kp", 0.0), own.get("kv", 0.0)] for own in used], np.float64)
    torque = np.array([(own["force_range"] or [0, np.inf])[1] for own in used], np.float64)
    own = {joint["name"]: joint for joint in facts["joints"]}
    joints = [own.get(actuator["joint"], {}) for actuator in used]
    spans = [
      control["range"] or joint.get("range") or [-np.inf, np.inf]
      for control, joint in zip(controls, joints, strict=True)
    ]
    low, high = np.array(spans, np.float64).T
    home = np.array([joint.get("home", 0.0) for joint in joints], np.float64)
    names = tuple(str(each["joint"]) for each in used)
    return cls(names, gains[:, 0], gains[:, 1], torque, low, high, home)
