"""Inputs of a policy on its robot: what sensors measure, what is commanded, and what the policy remembers."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from tasks.core.errors import TaskError


@dataclass(frozen=True)
class Sensor:
  """Input of a policy on its robot, a tensor [num_envs, columns] of `measure()`."""

  columns: tuple[str, ...]  # joints, axes, names of commands, ...
  unit: str  # "" if it has none
  meaning: str  # with frame and origin, for the program that runs the policy


def in_order(sensors: Mapping[str, Sensor], measured: Mapping[str, Tensor]) -> dict[str, Sensor]:
  """Return the sensors in the order of `measure()`.

  Raises TaskError unless it returns as many columns [num_envs, n] as each sensor has names.
  """
  found = {name: tuple(value.shape[1:]) for name, value in measured.items()}
  wanted = {name: (len(sensor.columns),) for name, sensor in sensors.items()}
  for name in dict.fromkeys((*wanted, *found)):
    if found.get(name) != wanted.get(name):
      raise TaskError(
        f"sensor '{name}': measure() returns {_columns(found.get(name))}, self.sensors has "
        f"{_columns(wanted.get(name))}: write both alike"
      )
  return {name: sensors[name] for name in measured}


def _columns(shape: tuple[int, ...] | None) -> str:
  return "none" if shape is None else f"{' x '.join(map(str, shape)) or 'no'} columns"
