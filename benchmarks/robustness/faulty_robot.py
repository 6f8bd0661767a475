"""A deployed controller with a fault, and its robot in MuJoCo: logs as the runner writes them."""

import json
import math
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from gpurobot.deploy.deployed import Deployed
from gpurobot.deploy.on_robot import Observer, Servos

Floats = NDArray[np.float64]
Network = Callable[[Floats], tuple[Floats, Floats]]  # observation -> action clipped, and not
H = 0.002  # physics step [s]
START = 0.1  # time before the first control step [s]
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
    servos = Servos.of(facts)
    self.joints = list(servos.joints)  # in the order of the controls
    self.kp, self.kd, self.limit = servos.kp, servos.kd, servos.torque
    self.order = np.argsort(self.joints)[::-1]  # place among the controls of each of the robot's joints
    self.qpos = np.array([self.model.joint(name).qposadr[0] for name in self.joints])
    self.dofs = np.array([self.model.joint(name).dofadr[0] for name in self.joints])
    self.home = self.model.key("home").qpos[self.qpos]
    seen = Observer(facts)
    self.sensors, self.places, self.scale, self.offset = seen.sensors, seen.places, seen.scale, seen.offset
    self.blocks = np.array([column["block"] for column in facts["observation"]["columns"]])
    self.length = facts["observation"]["history, the oldest first"]


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
    self.high = draw.choice([0.4, 0.6, 1.6, 2.0])
    self.axes, self.drift = (
      AXES[draw.integers(len(AXES))],
      1 + draw.choice([-1, 1]) * draw.uniform(0.005, 0.03),
    )
    self.is_ = kind.__eq__
    self.last, self.raw_last, self.command = 0 * robot.home, 0 * robot.home, np.zeros(3)
    self.next_command, self.step = 0.0, 0.0
    self.gains: Floats = np.zeros(0)
    self.rows: list[dict[str, Any]] = []
    self.past: list[tuple[Floats, Floats, Floats]] = []  # states and torques, at each physics step
    self.pending: list[tuple[float, Floats]] = []  # targets, with the time of arrival
    self.waits: list[float] = []  # of arrived targets for a physics step [s]
    self.obs: list[Floats] = []

  def run(self, act: Network, seconds: float) -> dict[str, Any]:
    """Return the log of a walk of so many seconds, after a tenth of a second."""
    r, m, draw = self.r, self.r.model, self.random
    data = mujoco.MjData(m)
    mujoco.mj_resetDataKeyframe(m, data, m.key("home").id)
    data.qpos[r.qpos] += 0.1 * draw.uniform(-1, 1, len(r.joints))
    self.step = r.facts["rate"]["step [s]"] * (draw.choice([0.5, 0.75, 1.5]) if self.is_("rate") else 1)
    kp = r.kp * (self.high if self.is_("kp") else 1)
    kd = r.kd * (2 * self.high - 0.5 if self.is_("kd") else 1)
    limit = r.limit * (0.25 if self.is_("torque") else 1)
    self.gains = np.array([r.kp, r.kd] if self.raw else [kp, kd])
    target, torque = r.home.copy(), 0 * r.home
    for index in range(round((seconds + START) / H)):
      now = index * H
      self.past.append((data.qpos.copy(), data.qvel.copy(), torque))
      while now >= self.due() - 1e-9:
        self.tick(act)
      while self.pending and self.pending[0][0] <= now + 1e-9:
        due, target = self.pending.pop(0)
        self.waits.append(now - due)
      torque = np.clip(kp * (target - data.qpos[r.qpos]) - kd * data.qvel[r.dofs], -limit, limit)
      data.qfrc_applied[r.dofs] = torque
      mujoco.mj_step(m, data)
    columns = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
    return {"manifest": json.dumps(r.facts), "robot.joints": np.array(r.joints)[r.order], **columns}

  def due(self) -> float:
    """Return the time of the next control step, with jitter [s]."""
    count = len(self.rows)
    return START + count * self.step + 0.0005 * math.sin(7.3 * count)

  def tick(self, act: Network) -> None:
    """Run the controller once."""
    due, r = self.due(), self.r
    if due >= self.next_command:
      low, high = np.array([command["range"] for command in r.facts["commands"]]).T
      self.command, self.next_command = self.random.uniform(low, high), due + 2.5
      self.command *= 3 if self.is_("action_raw") else 1  # so that the action reaches its limits
    at = max(0, math.floor((due - self.sensor_latency) / H))
    message = self.message(*self.past[at])
    sensors = self.measure(message, due - START)
    obs = self.observe(sensors)
    action, raw = act(obs)
    ctrl = self.control(action)
    if not (self.is_("held") and self.raw and len(self.rows) % 2):
      self.pending.append((due + self.actuator_latency, self.mapped(ctrl) if self.raw else ctrl))
    self.rows.append(
      {
        "time": due,
        "sensor_time": at * H * (self.drift if self.is_("drift") else 1),
        **{f"sensor.{name}": value for name, value in sensors.items()},
        "obs": obs,
        "action": action,
        "ctrl": ctrl,
        "gains": self.gains,
        **{f"robot.{name}": value for name, value in message.items()},
      }
    )
    self.last, self.raw_last = action, raw

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
      x["quaternion"] = (
        x["quaternion"][[1, 2, 3, 0]] if kind == "quaternion_order" else x["quaternion"] * [1, -1, -1, -1]
      )

  def measure(self, message: dict[str, Floats], t: float) -> dict[str, Floats]:
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
      "command": self.command,
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

  def control(self, action: Floats) -> Floats:
    """Return the command."""
    if self.is_("held") and not self.raw and len(self.rows) % 2:
      return np.asarray(self.rows[-1]["ctrl"])
    control, scale = self.r.facts["control"], self.high if self.is_("action_scale") else 1.0
    ctrl = np.array(control["offset"]) + scale * action @ np.array(control["gain"])
    return ctrl if self.raw else self.mapped(ctrl)

  def mapped(self, ctrl: Floats) -> Floats:
    """Return the targets that reach the servos."""
    signs = np.ones(len(ctrl))
    signs[self.joint] = -1 if self.is_("sign_out") else 1
    return ctrl[self.perm] if self.is_("joints_out") else ctrl * signs
