"""A deployed controller with a fault, and its robot in MuJoCo: logs as the runner writes them."""

import json
import math
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from gpurobot.deploy.deployed import Deployed

Floats = NDArray[np.float64]
Network = Callable[[Floats], tuple[Floats, Floats]]  # observation -> action clipped, and not
H = 0.002  # physics step [s]
FAULTS = (
  *("joints_in", "joints_out", "sign_in", "sign_out", "degrees", "gyro_degrees", "home_twice", "home_never"),
  *("quaternion_order", "conjugated", "gravity_world", "gyro_frame", "action_missing", "action_raw"),
  *("history_order", "normalisation", "command_order", "action_scale", "kp", "kd", "rate"),
  *("sensor_latency", "actuator_latency", "held", "drift", "torque", "speed_unit", "speed_order"),
)
AXES = (([1, 0, 2], [1, -1, 1]), ([0, 1, 2], [1, -1, -1]), ([2, 0, 1], [1, 1, 1]), ([0, 1, 2], [-1, -1, 1]))


def network(deployed: Deployed, *, normalised: bool = True) -> Network:
  """Return a policy as a function that also returns its action before it is clipped."""
  if not normalised:
    deployed.shift.zero_()
    deployed.scale.fill_(1.0)
  raw: list[Any] = []
  deployed.head.register_forward_hook(lambda *found: raw.append(found[2].action(found[2].mode())))

  def act(obs: Floats) -> tuple[Floats, Floats]:
    raw.clear()
    import torch  # noqa: PLC0415

    with torch.no_grad():
      action = deployed(torch.from_numpy(obs[None]).float())[0]
    return action[0].double().numpy(), raw[0][0].double().numpy()

  return act


class Robot:
  """The robot of a policy's training, with servos, sensors and a radio; its joints are in another order."""

  def __init__(self, file: str, facts: dict[str, Any]) -> None:
    self.facts, self.settings = facts, facts["settings"]
    spec = mujoco.MjSpec.from_file(file)
    spec.option.timestep, spec.option.disableflags = H, mujoco.mjtDisableBit.mjDSBL_ACTUATION
    self.model = spec.compile()
    parts = {actuator["name"]: actuator for actuator in facts["actuators"]}
    servos = [parts[control["actuator"]] for control in facts["control"]["controls"]]
    self.joints = [servo["joint"] for servo in servos]  # in the order of the controls
    self.kp, self.kd = (np.array([servo[key] for servo in servos]) for key in ("kp", "kv"))
    self.limit = np.array([servo["force_range"][1] for servo in servos])
    self.order = np.argsort(self.joints)[::-1]  # place among the controls of each of the robot's joints
    self.qpos = np.array([self.model.joint(name).qposadr[0] for name in self.joints])
    self.dofs = np.array([self.model.joint(name).dofadr[0] for name in self.joints])
    self.home = self.model.key("home").qpos[self.qpos]
    self.sensors = {sensor["name"]: sensor["columns"] for sensor in facts["sensors"]}
    names = [(name, column) for name, columns in self.sensors.items() for column in columns]
    columns = facts["observation"]["columns"]
    self.places = [names.index((column["sensor"], column["column"])) for column in columns]
    self.blocks = np.array([column["block"] for column in columns])
    self.scale, self.offset = (np.array([c[key] for c in columns]) for key in ("scale", "offset"))
    self.length = facts["observation"]["history, the oldest first"]

  def log(self, act: Network, bare: Network, kind: str = "", seed: int = 0, seconds: float = 10.0) -> Any:
    """Return a log with a fault of a kind, or with none; `bare` does not normalise."""
    return Walk(self, kind, seed).run(bare if kind == "normalisation" else act, seconds)


class Walk:
  """One log."""

  def __init__(self, robot: Robot, kind: str, seed: int) -> None:
    self.r, self.kind, self.random = robot, kind, np.random.default_rng([seed, *kind.encode()])
    self.raw = seed % 2 == 1  # whether the fault is beyond the controller, if it can be
    draw, n = self.random, len(robot.joints)
    self.sensor_latency, self.actuator_latency = draw.uniform(0, 0.004), draw.uniform(0.001, 0.014)
    if kind == "sensor_latency":
      self.sensor_latency = draw.uniform(0.03, 0.06)
    if kind == "actuator_latency":
      self.actuator_latency = draw.uniform(0.03, 0.06)
    self.joint, self.perm = int(draw.integers(n)), np.roll(np.arange(n), int(draw.integers(1, n)))
    self.low, self.high = draw.choice([0.5, 0.6]), draw.choice([0.4, 0.6, 1.6, 2.0])
    self.axes, self.drift = AXES[draw.integers(len(AXES))], 1 + draw.choice([-1, 1]) * draw.uniform(0.005, 0.03)
    self.is_ = kind.__eq__

  def run(self, act: Network, seconds: float) -> dict[str, Any]:
    """Simulate."""
    r, m, draw = self.r, self.r.model, self.random
    data = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, data, m.key("home").id)
    data.qpos[r.qpos] += 0.1 * draw.uniform(-1, 1, len(r.joints))
    step = r.facts["rate"]["step [s]"] * (draw.choice([0.5, 0.75, 1.5]) if self.is_("rate") else 1)
    kp, kd, limit = r.kp.copy(), r.kd.copy(), r.limit * (0.25 if self.is_("torque") else 1)
    kp, kd = kp * (self.high if self.is_("kp") else 1), kd * (2 * self.high - 0.5 if self.is_("kd") else 1)
    sent = [r.kp, r.kd] if self.raw else [kp, kd]
    target, torque, pending = r.home.copy(), 0 * r.home, []
    past, message, rows = [], [], []
    self.last, self.raw_last, self.obs = 0 * r.home, 0 * r.home, []
    command, tick, next_command = np.zeros(3), 0, 0.0
    due = lambda k: 0.1 + k * step + 0.0005 * math.sin(7.3 * k)  # noqa: E731 (jitter)
    for index in range(round((seconds + 0.1) / H)):
      t = index * H
      past.append((data.qpos.copy(), data.qvel.copy(), torque))
      while t >= due(tick) - 1e-9:
        if due(tick) >= next_command:
          low, high = np.array([c["range"] for c in r.facts["commands"]]).T
          command, next_command = draw.uniform(low, high), next_command + 2.5
          command = 3 * command if self.is_("action_raw") else command  # the action reaches its limits
        at = max(0, math.floor((due(tick) - self.sensor_latency) / H))
        message = self.message(*past[at])
        sensors = self.measure(message, command, due(tick) - 0.1)
        obs = self.observe(sensors)
        action, raw = act(obs)
        ctrl = self.control(action, rows, tick)
        rows.append(
          {
            "time": due(tick),
            "sensor_time": at * H * (self.drift if self.is_("drift") else 1),
            **{f"sensor.{name}": value for name, value in sensors.items()},
            **{"obs": obs, "action": action, "ctrl": ctrl, "gains": np.array(sent)},
            **{f"robot.{name}": value for name, value in message.items()},
          }
        )
        self.last, self.raw_last = action, raw
        if not (self.is_("held") and self.raw and tick % 2):
          pending.append((due(tick) + self.actuator_latency, self.beyond(ctrl)))
        tick += 1
      while pending and pending[0][0] <= t + 1e-9:
        target = pending.pop(0)[1]
      torque = np.clip(kp * (target - data.qpos[r.qpos]) - kd * data.qvel[r.dofs], -limit, limit)
      data.qfrc_applied[r.dofs] = torque
      mujoco.mj_step(m, data)
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {"manifest": json.dumps(r.facts), "robot.joints": np.array(r.joints)[r.order], **columns}

  def message(self, qpos: Floats, qvel: Floats, torque: Floats) -> dict[str, Floats]:
    """Return a message of the robot, with the noise of the training."""
    r, s, draw = self.r, self.r.settings, lambda n: self.random.uniform(-1, 1, n)
    quaternion, n = qpos[3:7].copy(), len(r.joints)
    mujoco.mju_quatIntegrate(quaternion, draw(3), s["noise_gravity"])
    angles = qpos[r.qpos] + s["noise_angles"] * draw(n)
    speeds = qvel[r.dofs] + s["noise_speeds"] * draw(n)
    gyro = qvel[3:6] + s["noise_angular_velocity"] * draw(3)
    found = {"angles": angles, "speeds": speeds, "quaternion": quaternion, "gyro": gyro}
    if self.raw:
      self.spoil(found, "quaternion")
    found |= {"torques": torque}
    return found | {name: found[name][r.order] for name in ("angles", "speeds", "torques")}

  def spoil(self, x: dict[str, Floats], attitude: str) -> None:
    """Put a fault into what is measured: joints in the order of the controls, quaternion or gravity."""
    kind, j = self.kind, self.joint
    if kind == "sign_in":
      x["angles"][j], x["speeds"][j] = -x["angles"][j], -x["speeds"][j]
    elif kind == "degrees":
      x["angles"] = np.rad2deg(x["angles"])
    elif kind == "gyro_degrees":
      x["gyro"] = np.rad2deg(x["gyro"])
    elif kind == "gyro_frame":
      x["gyro"] = x["gyro"][self.axes[0]] * self.axes[1]
    elif kind == "speed_unit":
      x["speeds"] = np.rad2deg(x["speeds"])
    elif kind == "speed_order":
      x["speeds"] = x["speeds"][self.perm]
    elif kind in ("quaternion_order", "conjugated") and attitude == "quaternion":
      x["quaternion"] = x["quaternion"][[1, 2, 3, 0]] if kind == "quaternion_order" else x["quaternion"] * [1, -1, -1, -1]

  def measure(self, message: dict[str, Floats], command: Floats, t: float) -> dict[str, Floats]:
    """Return the sensors' numbers."""
    r, kind = self.r, self.kind
    back = np.argsort(r.order)
    x = {name: message[name][back] for name in ("angles", "speeds")}
    x |= {"gyro": message["gyro"], "quaternion": message["quaternion"]}
    if not self.raw:
      self.spoil(x, "quaternion")
    if kind == "joints_in":
      x |= {"angles": x["angles"][self.perm], "speeds": x["speeds"][self.perm]}
    w, a, b, c = x["quaternion"]
    gravity = np.array([2 * (w * b - a * c), -2 * (w * a + b * c), 2 * (a * a + b * b) - 1])
    cycle = 2 * math.pi * t / r.settings.get("step_seconds", 1.0)
    last = {"action_missing": 0 * self.last, "action_raw": self.raw_last}.get(kind, self.last)
    angles = x["angles"] - r.home if kind == "home_twice" and self.raw else x["angles"]
    angles = angles + r.home if kind == "home_never" and self.raw else angles
    order = [r.joints.index(name) for name in r.sensors["angles"]]
    found = {
      "angular_velocity": x["gyro"],
      "gravity": np.array([0.0, 0.0, -1.0]) if kind == "gravity_world" else gravity,
      "command": command,
      "angles": angles[order],
      "speeds": x["speeds"][order],
      "action": last,
      "clock": np.array([math.sin(cycle), math.cos(cycle)]),
    }
    return {name: found[name] for name in r.sensors}

  def observe(self, sensors: dict[str, Floats]) -> Floats:
    """Return the observation with history."""
    r, kind = self.r, self.kind
    numbers = np.concatenate([sensors[name] for name in r.sensors])[r.places]
    wrong = {"home_twice": 2.0, "home_never": 0.0}.get(kind, 1.0) if not self.raw else 1.0
    latest = r.scale * (numbers - np.where(r.blocks == "angles", wrong, 1.0) * r.offset)
    if kind == "command_order":
      latest[r.blocks == "command"] = np.roll(latest[r.blocks == "command"], 1 if self.raw else 2)
    self.obs = [*(self.obs or [latest] * r.length), latest][-r.length :]
    return np.concatenate(self.obs[::-1] if kind == "history_order" else self.obs)

  def control(self, action: Floats, rows: list[Any], tick: int) -> Floats:
    """Return the command."""
    r, kind = self.r, self.kind
    if kind == "held" and not self.raw and tick % 2:
      return rows[-1]["ctrl"]
    scale = self.high if kind == "action_scale" else 1.0
    ctrl = np.array(r.facts["control"]["offset"]) + scale * action @ np.array(r.facts["control"]["gain"])
    return ctrl if self.raw else self.mapped(ctrl)

  def mapped(self, ctrl: Floats) -> Floats:
    if self.kind == "joints_out":
      return ctrl[self.perm]
    signs = np.ones(len(ctrl))
    signs[self.joint] = -1 if self.kind == "sign_out" else 1
    return ctrl * signs

  def beyond(self, ctrl: Floats) -> Floats:
    """Return the targets that reach the servos."""
    return self.mapped(ctrl) if self.raw else ctrl
