"""Logs of a deployed controller: a `.npz` file of the runner, or anybody's columns under our keys."""

import csv
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpurobot.deploy.exported import Exported
from gpurobot.deploy.on_robot import Floats, Servos
from gpurobot.settings.config import ConfigError

LEAST = 100  # control steps that a diagnosis needs
GAP = 10.0  # a gap: so many median control steps between two rows


@dataclass(frozen=True)
class Log:
  """Numbers of each control step, by key, and the manifest of the policy."""

  facts: Mapping[str, Any]
  joints: tuple[str, ...]  # of the robot, in its order
  columns: Mapping[str, Floats]  # [steps, ...]

  def __getitem__(self, key: str) -> Floats:
    """Return the numbers of a key [steps, ...]."""
    return self.columns[key]

  def has(self, *keys: str) -> bool:
    """Return whether all keys are there."""
    return all(key in self.columns for key in keys)

  def of_joints(self, key: str, joints: list[str]) -> Floats:
    """Return the numbers of a robot's message [steps, joints], by names of joints."""
    return self[key][:, [self.joints.index(name) for name in joints]]


def read_policy(folder: Path) -> Exported:
  """Return the exported policy of a folder; raise ConfigError if it cannot be replayed."""
  policy = Exported.of(folder)
  if not policy.facts.get("observation", {}).get("columns"):
    raise ConfigError(f"policy={folder}: its task declares no sensors, so a log cannot be compared with it")
  return policy


def read(path: Path, facts: Mapping[str, Any], mapping: Path | None = None) -> Log:
  """Return a log of the policy that `facts` describe; raise ConfigError if it cannot be used.

  `mapping`: JSON or TOML with a column's name, or a list of these, for each of our keys. A key `robot.joints`
  there lists the names of the joints.
  """
  if not path.is_file():
    raise ConfigError(f"there is no log '{path}'")
  try:
    found = _csv(path) if path.suffix == ".csv" else _npz(path)
  except (ValueError, OSError, EOFError) as error:
    raise ConfigError(f"'{path}' is no log: {error}") from error
  found = _mapped(found, mapping, path) if mapping else found
  if mapping is None and "manifest" in found:
    _compare(json.loads(str(found["manifest"])), facts, path)
  joints = tuple(str(name) for name in found.get("robot.joints", Servos.of(facts).joints))
  shapes = _shapes(facts, joints)
  if not found.keys() & shapes.keys():
    raise ConfigError(f"'{path}' has none of the keys {', '.join(shapes)}: name its columns with columns=...")
  try:
    columns = {key: np.asarray(found[key], np.float64) for key in shapes if key in found}
  except ValueError as error:
    raise ConfigError(f"'{path}' has something else than numbers: {error}") from error
  _check_joints(columns, joints, facts, path)
  for key, value in columns.items():
    _check_rows(key, value, shapes[key], len(next(iter(columns.values()))), path)
  for key in ("time", "sensor_time"):
    if key in columns:
      _check_clock(key, columns[key], path)
  return Log(facts, joints, columns)


def _csv(path: Path) -> dict[str, Any]:
  with path.open(newline="") as file:
    head, *rows = csv.reader(file)
  if wrong := [row for row in rows if len(row) != len(head)]:
    raise ValueError(f"row {rows.index(wrong[0]) + 2} has {len(wrong[0])} columns, the head has {len(head)}")
  return dict(zip(head, np.array(rows, np.float64).T, strict=True))


def _npz(path: Path) -> dict[str, Any]:
  with np.load(path, allow_pickle=False) as file:
    if not hasattr(file, "files"):
      raise ValueError("it has a single array; the runner writes .npz")
    return {key: file[key] for key in file.files}


def _mapped(found: Mapping[str, Any], mapping: Path, path: Path) -> dict[str, Any]:
  """Return columns under our keys."""
  try:
    text = mapping.read_text()
    names = tomllib.loads(text) if mapping.suffix == ".toml" else json.loads(text)
  except (OSError, ValueError) as error:
    raise ConfigError(f"columns={mapping} cannot be read: {error}") from error
  result: dict[str, Any] = {}
  for key, name in names.items():
    if key == "robot.joints":
      result[key] = name
      continue
    for own in [name] if isinstance(name, str) else name:
      if own not in found:
        known = ", ".join(list(found)[:8])
        raise ConfigError(f"columns={mapping}: '{path}' has no '{own}' for {key}; it has {known}, ...")
    parts = found[name] if isinstance(name, str) else np.stack([found[own] for own in name], 1)
    result[key] = parts
  return result


def _compare(own: Mapping[str, Any], facts: Mapping[str, Any], path: Path) -> None:
  """Raise ConfigError if a log is of another policy's robot."""
  for part in ("sensors", "actions", "control"):
    if own.get(part) != facts.get(part):
      raise ConfigError(
        f"'{path}' is a log of another export, its {part} differ: name its folder, policy=..."
      )


def _shapes(facts: Mapping[str, Any], joints: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
  """Return the shape of a row of each key."""
  controls = len(facts["control"]["controls"])
  shapes: dict[str, tuple[int, ...]] = {"time": (), "sensor_time": ()}
  shapes |= {f"sensor.{sensor['name']}": (len(sensor["columns"]),) for sensor in facts["sensors"]}
  shapes |= {"obs": (facts["inputs"]["obs"]["width"],), "action": (len(facts["actions"]["names"]),)}
  shapes |= {"ctrl": (controls,), "gains": (2, controls)}
  shapes |= {f"robot.{name}": (len(joints),) for name in ("angles", "speeds", "torques")}
  return shapes | {"robot.quaternion": (4,), "robot.gyro": (3,)}


def _check_joints(
  columns: Mapping[str, Floats], joints: tuple[str, ...], facts: Mapping[str, Any], path: Path
) -> None:
  """Raise ConfigError if a robot lacks a joint of the export."""
  wanted = [name for s in facts["sensors"] if s["name"] in ("angles", "speeds") for name in s["columns"]]
  if any(key.startswith("robot.") for key in columns):
    for name in (*Servos.of(facts).joints, *wanted):
      if name not in joints:
        raise ConfigError(
          f"'{path}': its robot has no joint '{name}', as the export has; it is another robot"
        )


def _check_rows(key: str, value: Floats, shape: tuple[int, ...], steps: int, path: Path) -> None:
  """Raise ConfigError if the numbers of a key cannot be used."""
  if value.shape[1:] != shape or not value.ndim:
    raise ConfigError(f"'{path}': {key} has the shape {value.shape}, a row of the export's has {shape}")
  if len(value) != steps:
    raise ConfigError(f"'{path}': {key} has {len(value)} rows, others have {steps}: log all at one rate")
  if wrong := np.flatnonzero(~np.isfinite(value.reshape(steps, -1)).all(1)).tolist():
    raise ConfigError(f"'{path}': {key} is not finite in row {wrong[0]} of {steps}: leave such rows out")
  if steps < LEAST:
    raise ConfigError(f"'{path}' has {steps} control steps: at least {LEAST} are needed")


def _check_clock(key: str, times: Floats, path: Path) -> None:
  """Raise ConfigError if a clock goes back, the controller's stands still, or there is a gap."""
  steps = np.diff(times)
  if steps.min() < 0 or (key == "time" and steps.min() == 0):
    raise ConfigError(f"'{path}': {key} stands still or goes back after row {int(steps.argmin())}")
  if steps.max() > GAP * max(float(np.median(steps)), 1e-9):
    worst = int(steps.argmax())
    raise ConfigError(
      f"'{path}': a gap of {steps[worst]:.3g} s in {key} after row {worst}: cut the log there"
    )
