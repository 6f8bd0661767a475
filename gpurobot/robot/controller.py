"""Controller of a robot: sensors from its messages, observation, action and command, as policy.json says."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gpurobot.deploy.exported import NAMES, Exported
from gpurobot.deploy.on_robot import Floats, Observer, Servos, filtered, no_servos
from gpurobot.robot.interface import State
from gpurobot.settings.config import ConfigError

MEASURED = ("angular_velocity", "gravity", "command", "angles", "speeds", "action", "clock")
WITHOUT = {"velocity": "env.see_velocity=false", "scan": "env.blind=true"}  # settings of policies
JOINTS = ("angles", "speeds")  # sensors with a column for each joint
WARM = 5  # steps of TorchScript until it is compiled


@dataclass(frozen=True)
class Tick:
  """Numbers of one control step."""

  sensors: dict[str, Floats]  # by name, in the order of the manifest's columns
  obs: Floats  # [width] with history
  action: Floats  # [actions]
  ctrl: Floats  # [controls] [rad], without limits


class Controller:
  """An exported policy with its memory."""

  def __init__(self, folder: Path) -> None:
    """Read an export; raise ConfigError if a robot cannot be run with it."""
    self._policy = Exported.of(folder)
    self.text = (folder / NAMES[2]).read_text()
    self.facts = facts = self._policy.facts
    if problem := next(_problems(facts), ""):
      raise ConfigError(f"{folder}: {problem}")
    self.step_seconds: float = facts["rate"]["step [s]"]
    self.servos = Servos.of(facts)
    self._observer = Observer(facts)
    self.columns = self._observer.sensors
    self._offset, self._gain = (np.array(facts["control"][name]) for name in ("offset", "gain"))
    self._length: int = facts["observation"]["history, the oldest first"]
    self._past: list[Floats] = []
    self._action, self._ticks = np.zeros(len(facts["actions"]["names"])), 0
    self._sent = self._action  # the last action after the filter of the export, if it has one
    for _ in range(WARM):
      self._act(np.zeros(facts["inputs"]["obs"]["width"]))

  def robot_columns(self, joints: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of columns and servos among a robot's joints; raise ConfigError if it lacks one."""
    wanted = {name: self.columns.get(name, []) for name in JOINTS} | {"servos": list(self.servos.joints)}
    for name in (name for names in wanted.values() for name in names):
      if name not in joints:
        raise ConfigError(
          f"the export is for a robot with the joint '{name}', this one has {', '.join(joints)}"
        )
    return {key: [joints.index(name) for name in names] for key, names in wanted.items()}

  def step(self, state: State, places: dict[str, list[int]], command: Floats) -> Tick:
    """Return the numbers of the next control step; `places` as `robot_columns` returns them."""
    sensors = self._measure(state, places, command)
    latest = self._observer(sensors)
    self._past = [*(self._past or [latest] * self._length), latest][-self._length :]
    obs = np.concatenate(self._past)
    self._action = action = self._act(obs)
    self._ticks += 1
    self._sent = filtered(self.facts, self._sent, action)
    return Tick(sensors, obs, action, self._offset + self._sent @ self._gain)

  def _act(self, obs: Floats) -> Floats:
    given = {"policy": torch.from_numpy(obs[None]).float()}
    return self._policy(given, torch.tensor([self._ticks == 0]))[0].double().numpy()

  def _measure(self, state: State, places: dict[str, list[int]], command: Floats) -> dict[str, Floats]:
    """Return the numbers of each sensor [columns]."""
    seconds = self.facts["settings"].get("step_seconds", 1.0)
    cycle = 2 * math.pi * self._ticks * self.step_seconds / seconds
    found = {
      "angular_velocity": state.gyro,
      "gravity": state.gravity,
      "command": command,
      "angles": state.angles[places["angles"]],
      "speeds": state.speeds[places["speeds"]],
      "action": self._action,
      "clock": np.array([math.sin(cycle), math.cos(cycle)]),
    }
    return {name: found[name] for name in self.columns}


def _problems(facts: dict[str, Any]) -> Iterator[str]:
  """Yield why a robot cannot be run with a policy."""
  sensors = [sensor["name"] for sensor in facts.get("sensors", ())]
  if not sensors or "columns" not in facts["observation"]:
    yield "its task declares no sensors, so the runner cannot observe for it"
  for name in (name for name in sensors if name not in MEASURED):
    without = f": train the policy with {WITHOUT[name]}" if name in WITHOUT else ""
    yield f"the runner does not measure '{name}'{without}"
  yield from (
    f"the runner has no image '{name}'" for name, known in facts["inputs"].items() if "shape" in known
  )
  if facts.get("control", {}).get("offset") is None:
    yield "its targets depend on more than the action, so the runner cannot command them"
  wheels = {joint.get("actuator") for joint in facts.get("joints", ()) if joint.get("kp") == 0}
  for name in no_servos(facts):
    kind = "follows a speed, which the runner cannot send" if name in wheels else "is no servo of a joint"
    yield f"the actuator '{name}' {kind}"
  if "home" not in facts.get("key_frames", {}):
    yield "there is no key frame 'home' to start from: add one to the robot's file"
  if all(joint["type"] != "free" for joint in facts.get("joints", ())):
    yield "its robot is fixed to the world"
