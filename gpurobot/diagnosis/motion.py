"""Physical consistency of a robot's messages: speeds and angles, gyro and attitude."""

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np

from gpurobot.deploy.on_robot import Floats, gravity
from gpurobot.diagnosis import timing
from gpurobot.diagnosis.finding import Finding
from gpurobot.diagnosis.log import Log
from gpurobot.diagnosis.relation import relate, rms
from gpurobot.diagnosis.replay import attitudes

LAG = 10  # control steps over which attitude and gyro are compared
TURN = 7.0  # an angle that no joint reaches [rad]
FACTOR = 2.5  # scale from which a unit differs
DEGREES = 30.0  # scale from which it is degrees
SURE = 0.3  # correlation from which it has a sign: a joint that stands still has noise alone
CLEARER = 0.9  # rest of another reading, relative to the plain one's, that counts


def speeds(log: Log) -> Iterator[Finding]:
  """Yield joint angles and speeds that do not fit each other."""
  for source, names in (("robot", list(log.joints)), ("sensor", _columns(log))):
    if log.has(f"{source}.angles", f"{source}.speeds"):
      yield from _speeds(log, log[f"{source}.angles"], log[f"{source}.speeds"], names)
      return


def _columns(log: Log) -> list[str]:
  return next((list(s["columns"]) for s in log.facts["sensors"] if s["name"] == "angles"), [])


def _speeds(log: Log, angles: Floats, speeds: Floats, names: list[str]) -> Iterator[Finding]:
  reach = float(np.abs(angles).max())
  if reach > TURN:
    yield Finding("degrees", f"an angle reaches {reach:.3g} rad", float(np.log(reach)))
    angles = np.deg2rad(angles)
  x = np.diff(angles, axis=0) / timing.step(log)
  y = (speeds[1:] + speeds[:-1]) / 2
  moving = x.std(0) > 0.3 * np.median(x.std(0))
  x, y, names = x[:, moving], y[:, moving], [name for name, own in zip(names, moving, strict=True) if own]
  found = relate(x, y, 0.7)
  if found.rest > 0.95:
    return  # it hardly moves
  if len(found.moved) > 1:
    first = found.moved[0]
    text = f"{len(found.moved)} of {len(names)} fit the angle of another, {names[first]} the angle of "
    yield Finding("speed_order", text + names[found.order[first]], 2 * len(found.moved) / len(names))
  elif flipped := [j for j in found.flipped if found.scale[j] * x[:, j].std() < -SURE * y[:, j].std()]:
    text = f"the speed of {names[flipped[0]]} has the other sign than its angle's change"
    yield Finding("speed_order", text, 1.0)
  ratio = float(np.median(y.std(0) / x.std(0)))
  if reach <= TURN and not 1 / FACTOR < ratio < FACTOR:
    yield Finding("speed_unit", f"speeds are {ratio:.3g} times the change of the angles", abs(np.log(ratio)))


def attitude(log: Log) -> Iterator[Finding]:
  """Yield a quaternion and a gyro that do not fit each other."""
  gyro = next((log[key] for key in ("robot.gyro", "sensor.angular_velocity") if log.has(key)), None)
  if not log.has("robot.quaternion") or gyro is None:
    return
  quaternion = log["robot.quaternion"]
  turned = np.stack([gyro[k : len(gyro) - LAG + k] for k in range(LAG + 1)])
  y = (turned.sum(0) - (turned[0] + turned[-1]) / 2) / LAG  # mean over the lag [rad/s]
  readings = {kind: rates(own, LAG * timing.step(log)) for kind, own in attitudes(quaternion).items()}
  causes = [(kind, PLAIN) for kind in readings] + [("", frame) for frame in FRAMES[1:]]
  rests = [_rest(readings[kind], y, frame) for kind, frame in causes]
  best = int(np.argmin(rests))
  kind, frame = causes[best]
  if rests[best] < CLEARER * rests[0]:
    yield _named(kind, frame, (rests[0], rests[best]), float(gravity(quaternion)[:, 2].mean()))
  scale = float(np.sum(y * (readings[kind][:, frame[0]] * frame[1])) / np.sum(np.square(readings[kind])))
  if scale > DEGREES / 2:
    yield Finding("gyro_degrees", f"it is {scale:.3g} times the change of attitude", float(np.log(scale)))


def _named(kind: str, frame: "Frame", rests: tuple[float, float], down: float) -> Finding:
  text = "{:.0%} of the gyro differ from the change of attitude, and {:.0%}".format(*rests)
  if kind:
    return Finding(kind, f"{text} if so; its gravity has z = {down:.2f} in the mean", 1.5)
  axes = " ".join("-+"[int(sign > 0)] + "xyz"[axis] for axis, sign in zip(*frame, strict=True))
  return Finding("gyro_frame", f"{text} if its axes are {axes} of the trunk", 1.5)


Frame = tuple[list[int], "Floats"]
PLAIN: Frame = ([0, 1, 2], np.ones(3))


def _frames() -> list[Frame]:
  """Return the rotations by right angles, and one axis with the other sign."""
  found = [PLAIN]
  for order, signs in product(permutations(range(3)), product([1, -1], repeat=3)):
    matrix = np.diag(signs)[:, list(order)] * 1.0
    turned, flipped = np.linalg.det(matrix) > 0, order == (0, 1, 2) and sum(signs) == 1
    if (turned or flipped) and (order, signs) != ((0, 1, 2), (1, 1, 1)):
      found.append((list(order), np.array(signs) * 1.0))
  return found


FRAMES = _frames()


def _rest(x: Floats, y: Floats, frame: Frame) -> float:
  """Return the share of a gyro `y` that is not proportional to rates `x` in a frame."""
  x = x[:, frame[0]] * frame[1]
  scale = max(float(np.sum(x * y) / max(np.sum(x * x), 1e-12)), 0.0)
  return rms(y - scale * x) / max(rms(y), 1e-9)


def rates(quaternion: Floats, seconds: float) -> Floats:
  """Return the mean angular velocity in the body's axes over LAG control steps [n - LAG, 3]."""
  quaternion = quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)
  (a, *u), (b, *v) = quaternion[:-LAG].T, quaternion[LAG:].T
  first, second = np.stack(u, 1), np.stack(v, 1)
  vector = a[:, None] * second - b[:, None] * first - np.cross(first, second)
  scalar = a * b + (first * second).sum(1)
  vector = np.where(scalar[:, None] < 0, -vector, vector)
  return 2 * vector / seconds
