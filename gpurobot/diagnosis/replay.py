"""The policy's own replay: sensors from messages, observations from sensors, actions, commands."""

from collections.abc import Iterator

import numpy as np
import torch

from gpurobot.deploy.exported import Exported
from gpurobot.deploy.on_robot import Floats, Observer, Servos, filtered, gravity
from gpurobot.diagnosis.finding import Finding
from gpurobot.diagnosis.log import Log
from gpurobot.diagnosis.relation import Relation, differs, relate, rms

EXACT = 0.02  # rest of a relation that explains a difference
UNIT = 0.15  # relative difference of a scale from one that means nothing
PERCENT = 100
# Kinds of faults: of order, sign and unit.
SPEEDS = ("speed_order", "sign_in", "speed_unit")
GYRO = ("gyro_frame", "gyro_frame", "gyro_degrees")


def attitudes(quaternion: Floats) -> dict[str, Floats]:
  """Return the readings of a quaternion [n, 4] as w, x, y, z, by the mistake that each would mean."""
  moved, signs = quaternion[:, [3, 0, 1, 2]], np.array([1, -1, -1, -1])
  return {
    "": quaternion,
    "quaternion_order": moved,
    "conjugated": quaternion * signs,
  }


def joint_findings(x: Floats, y: Floats, names: list[str], where: str, home: Floats) -> Iterator[Finding]:
  """Yield what explains joint angles `y` that should be `x` [n, joints]; `home` as `_home` returns it."""
  found = relate(x, y)
  yield from _columns(found, names, where, ("joints_in", "sign_in", "degrees"))
  if found.moved or found.flipped or abs(found.gain - 1) > UNIT:
    return
  for kind, offset in (("home_twice", -home), ("home_never", home)):
    if rms(home) and rms(found.offset - offset) < 0.2 * rms(home):
      yield Finding(kind, f"{where} are off by {rms(found.offset):.2f} rad, the home angles", 1.0)
      return
  worst = int(np.abs(found.offset).argmax())
  yield Finding("zero", f"{names[worst]} of {where} is off by {found.offset[worst]:.3g} rad", 0.5)


def _columns(found: Relation, names: list[str], where: str, kinds: tuple[str, str, str]) -> Iterator[Finding]:
  """Yield an order, a sign and a unit that differ."""
  if found.moved:
    first = found.moved[0]
    source = names[found.order[first]]
    text = f"{len(found.moved)} of {len(names)} {where} come from another, {names[first]} from {source}"
    yield Finding(kinds[0], text, 2 * len(found.moved) / len(names))
  elif found.flipped:
    text = f"{', '.join(names[j] for j in found.flipped)} of {where} has the other sign"
    yield Finding(kinds[1], text, 2.0)
  if abs(found.gain - 1) > UNIT and found.gain > 0:
    yield Finding(kinds[2], f"{where} are {found.gain:.3g} times as large", abs(np.log(found.gain)))


def messages(log: Log) -> Iterator[Finding]:
  """Yield differences of the sensors from the robot's message."""
  sensors = {sensor["name"]: list(sensor["columns"]) for sensor in log.facts["sensors"]}
  moved = False
  if log.has("robot.angles", "sensor.angles"):
    x, y = log.of_joints("robot.angles", sensors["angles"]), log["sensor.angles"]
    found = list(joint_findings(x, y, sensors["angles"], "angles", _home(log))) if differs(x, y) else []
    moved = any(own.kind in ("joints_in", "sign_in") for own in found)
    yield from found
  if log.has("robot.speeds", "sensor.speeds") and not moved:
    x, y = log.of_joints("robot.speeds", sensors["speeds"]), log["sensor.speeds"]
    if differs(x, y):
      yield from _columns(relate(x, y), sensors["speeds"], "speeds", SPEEDS)
  if log.has("robot.gyro", "sensor.angular_velocity"):
    x, y = log["robot.gyro"], log["sensor.angular_velocity"]
    if differs(x, y):
      yield from _columns(relate(x, y), ["x", "y", "z"], "axes of the gyro", GYRO)
  if log.has("robot.quaternion", "sensor.gravity"):
    yield from _gravity(log["robot.quaternion"], log["sensor.gravity"])


def _gravity(quaternion: Floats, measured: Floats) -> Iterator[Finding]:
  if not differs(gravity(quaternion), measured, 0.01):
    return
  error = rms(gravity(quaternion) - measured)
  text = f"gravity differs from the quaternion's by {error:.2f}"
  world = np.broadcast_to([0.0, 0.0, -1.0], measured.shape)
  # A controller that reads x, y, z, w as w, x, y, z, or the inverse.
  wrong = {"quaternion_order": quaternion[:, [1, 2, 3, 0]], "conjugated": attitudes(quaternion)["conjugated"]}
  found = {kind: gravity(own) for kind, own in wrong.items()}
  found |= {"quaternion_order ": gravity(quaternion[:, [3, 0, 1, 2]]), "gravity_world": world}
  kind = min(found, key=lambda name: rms(found[name] - measured))
  left = rms(found[kind] - measured)
  explained = left < EXACT
  yield Finding(kind.strip() if explained else "gravity", f"{text}, and by {left:.2g} if so", 1 + error)


def _home(log: Log) -> Floats:
  """Return the offset of each joint angle in the observation, in the order of the sensor; 0 for others."""
  names = next(sensor["columns"] for sensor in log.facts["sensors"] if sensor["name"] == "angles")
  offsets = dict.fromkeys(names, 0.0)
  for column in log.facts["observation"]["columns"]:
    if column["sensor"] == "angles":
      offsets[column["column"]] = column["offset"]
  return np.array([offsets[name] for name in names])


def observations(log: Log) -> Iterator[Finding]:
  """Yield differences of the observation from the sensors."""
  columns = log.facts["observation"]["columns"]
  observer = Observer(log.facts)
  latest = observer({name: log[f"sensor.{name}"] for name in observer.sensors})
  width, length = len(columns), log.facts["observation"]["history, the oldest first"]
  frames = log["obs"].reshape(len(latest), length, width)[length:]
  expected = np.stack([latest[length - age : len(latest) - age] for age in reversed(range(length))], 1)
  if length > 1 and differs(expected[:, 0], frames[:, 0]) and differs(expected[:, -1], frames[:, -1]):
    back = rms(expected[:, ::-1] - frames)
    if back < 0.1 * rms(expected - frames):
      text = f"the frames differ by {rms(expected - frames):.2f}, and by {back:.2g} with the newest first"
      yield Finding("history_order", text, 1.0)
      return
  for name in dict.fromkeys(column["block"] for column in columns):
    own = [j for j, column in enumerate(columns) if column["block"] == name]
    x, y = expected[:, -1, own], frames[:, -1, own]
    if differs(x, y):
      yield from _block(name, [columns[j]["column"] for j in own], x, y, _home(log))


def _block(name: str, names: list[str], x: Floats, y: Floats, home: Floats) -> Iterator[Finding]:
  """Yield what explains a block `y` that should be `x` [n, columns]."""
  found, where = relate(x, y), f"columns of '{name}' in the observation"
  if name == "action" and rms(y) < 1e-6:
    yield Finding("action_missing", "it is zero in the observation", 1.0)
  elif name == "action" and not differs(x, y.clip(-1, 1)):
    yield Finding("action_raw", f"it reaches {np.abs(y).max():.2f} in the observation", rms(x - y))
  elif found.rest > EXACT:
    yield Finding("observation", f"block '{name}' differs by {rms(x - y):.2g}", rms(x - y) / (rms(x) + 1e-6))
  elif name == "angles":
    yield from joint_findings(x, y, names, where, home)
  else:
    kinds = {"command": ("command_order",) * 3, "speeds": SPEEDS, "angular_velocity": GYRO}
    yield from _columns(found, names, where, kinds.get(name, ("observation",) * 3))


def actions(log: Log, policy: Exported) -> Iterator[Finding]:
  """Yield differences of the action from the policy's for the logged observation, and of the last action."""
  action = log["action"]
  if log.has("obs"):
    yield from _network(log["obs"], action, policy)
  if log.has("sensor.action"):
    last, fed = action[:-1], log["sensor.action"][1:]
    if not differs(last, fed):
      return
    if rms(fed) < 1e-6:
      yield Finding("action_missing", f"the sensor 'action' is 0, the actions have {rms(last):.2f}", 1.0)
    elif not differs(last, fed.clip(-1, 1)):
      yield Finding("action_raw", f"the sensor 'action' reaches {np.abs(fed).max():.2f}", rms(last - fed))
    else:
      yield Finding("action_old", f"the sensor 'action' differs from it by {rms(last - fed):.2f}", 0.9)


def _network(obs: Floats, action: Floats, policy: Exported) -> Iterator[Finding]:
  own = replayed(policy, obs)
  if not differs(own, action, 1e-3):
    return
  error = rms(own - action)
  if not differs(own, action.clip(-1, 1), 1e-3):
    yield Finding("action_raw", f"the action reaches {np.abs(action).max():.2f}", error)
    return
  text = f"the actions differ from the policy's by {error:.2f}"
  buffers = dict(policy.module.named_buffers()) if policy.module is not None else {}
  if {"shift", "scale"} <= buffers.keys():
    shift, scale = (buffers[name].double().numpy() for name in ("shift", "scale"))
    for given, how in ((obs * scale + shift, "without"), ((obs - shift) / scale, "twice")):
      left = rms(replayed(policy, given) - action)
      if left < 0.1 * error:
        yield Finding("normalisation", f"{text}, and by {left:.2g} if normalised {how}", 1 + error)
        return
  yield Finding("policy", text, error / (rms(own) + 1e-6))


def replayed(policy: Exported, obs: Floats) -> Floats:
  """Return the policy's actions [n, actions] for observations [n, width], one after the other."""
  x = torch.from_numpy(obs).float()
  if "state" not in policy.facts["inputs"]:
    return policy({"policy": x}, torch.ones(len(x), dtype=torch.bool)).double().numpy()
  rows = [policy({"policy": row[None]}, torch.tensor([k == 0])) for k, row in enumerate(x)]
  return torch.cat(rows).double().numpy()


def _sent(log: Log) -> Floats:
  """Return the actions [n, actions] at the motors, after the filter of the export, if it has one."""
  rows = [np.zeros_like(log["action"][0])]
  for action in log["action"]:
    rows.append(filtered(log.facts, rows[-1], action))
  return np.stack(rows[1:])


def commands(log: Log) -> Iterator[Finding]:
  """Yield differences of the command from the action, and of the gains from the export's."""
  control, ctrl = log.facts["control"], log["ctrl"]
  servos = Servos.of(log.facts)
  if log.has("gains"):
    for kind, own, sent in (("kp", servos.kp, log["gains"][:, 0]), ("kd", servos.kd, log["gains"][:, 1])):
      ratio = float(np.median(np.median(sent, 0)[own > 0] / own[own > 0])) if (own > 0).any() else 1.0
      if differs(np.broadcast_to(own, sent.shape), sent, 0.02):
        yield Finding(kind, f"{kind} is sent {ratio:.3g} times the export's", abs(np.log(max(ratio, 0.01))))
  if control["offset"] is None or not log.has("action"):
    return
  ranges = np.array([c["range"] or [-np.inf, np.inf] for c in control["controls"]]).T
  x = np.array(control["offset"]) + _sent(log) @ np.array(control["gain"])
  x = np.where(np.abs(ctrl - x) < np.abs(ctrl - x.clip(*ranges)), x, x.clip(*ranges))  # either will do
  if not differs(x, ctrl):
    return
  same = (ctrl[1:] == ctrl[:-1]).all(1)
  if 0.2 < same.mean() < 1 and not differs(x[1:][~same], ctrl[1:][~same]):
    yield Finding("held", f"{PERCENT * same.mean():.0f} % of the commands repeat the one before", 1.0)
    return
  found = relate(x, ctrl)
  kinds = ("joints_out", "sign_out", "action_scale")
  explained = list(_columns(found, list(servos.joints), "targets", kinds)) if found.rest < 0.3 else []
  yield from explained
  if not explained:
    yield Finding(
      "target", f"targets differ by {rms(x - ctrl):.2g} rad", rms(x - ctrl) / (rms(x - x.mean(0)) + 1e-6)
    )
