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
    self.places = [names.index((column["sensor"], column["column"])) for column in seen]
    self.scale, self.offset = (np.array([column[key] for column in seen]) for key in ("scale", "offset"))

  def __call__(self, sensors: Mapping[str, Floats]) -> Floats:
    """Return the observation [..., width] for the numbers of each sensor [..., columns]."""
    numbers = np.concatenate([sensors[name] for name in self.sensors], -1)
    return self.scale * (numbers[..., self.places] - self.offset)


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
    driven, controls = _driven(facts), facts["control"]["controls"]
    joints = [driven.get(control["actuator"], {}) for control in controls]
    spans = [
      control["range"] or joint.get("range") or [-np.inf, np.inf]
      for control, joint in zip(controls, joints, strict=True)
    ]
    low, high = np.array(spans, np.float64).T
    keys = ("kp", "kd", "home", "torque_limit")  # null, and nan here, where there is none
    numbers = np.array([[joint.get(key) for key in keys] for joint in joints], np.float64).T
    kp, kd, home = np.nan_to_num(numbers[:3])
    names = tuple(str(joint.get("name")) for joint in joints)
    return cls(names, kp, kd, np.nan_to_num(numbers[3], nan=np.inf), low, high, home)


def no_servos(facts: Mapping[str, Any]) -> list[str]:
  """Return the names of a manifest's actuators that are no servo of a joint's own angle."""
  driven = _driven(facts)
  return [
    actuator["name"]
    for actuator in facts.get("actuators", ())
    if not driven.get(actuator["name"], {}).get("kp") or actuator["gear"] != 1
  ]


def _driven(facts: Mapping[str, Any]) -> dict[Any, Mapping[str, Any]]:
  """Return the joints of a manifest by the names of their actuators."""
  return {joint.get("actuator"): joint for joint in facts.get("joints", ())}
