"""Servos of a robot, from its torques: torque = kp * (target - angle) - kd * speed, with a late target."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpurobot.deploy.on_robot import Floats, Servos
from gpurobot.diagnosis import timing
from gpurobot.diagnosis.finding import Finding
from gpurobot.diagnosis.log import Log
from gpurobot.diagnosis.relation import rms

OLDEST = 6  # control steps that a command may take
PLATEAU, CLIPPED = 0.995, 0.04  # share of the largest torque; share of saturated samples that counts
CLEARER = 0.8  # rest of another reading, relative to the plain one's, that counts
EXPLAINED = 0.9  # share of the torques that servos explain, beside the noise of the sensors
GAIN = 1.25  # ratio of gains that counts
DECAYS = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)  # of the answer to a torque in a control step, exponents
STILL = 0.01  # median deviation of targets below which torques tell nothing of commands [rad]
SLACK = 0.004  # error of a latency [s]


@dataclass(frozen=True)
class Joints:
  """What servos did [steps, joints], in the order of the controls."""

  names: list[str]
  target: Floats
  angle: Floats
  speed: Floats
  torque: Floats
  free: Floats  # 1 where the torque is not at its limit, else 0
  kp: Floats  # of the export
  kd: Floats
  limit: Floats


def still(log: Log) -> bool:
  """Return whether the targets hardly move."""
  return log.has("ctrl") and float(np.median(log["ctrl"].std(0))) < STILL


def joints(log: Log) -> Joints | None:
  """Return what a log has of the servos; None if it lacks a part, or if their targets hardly move."""
  servos = Servos.of(log.facts)
  names, kp, kd = list(servos.joints), servos.kp, servos.kd
  if not log.has("ctrl", "robot.angles", "robot.speeds", "robot.torques") or not kp.all() or still(log):
    return None
  angle, speed, torque = (log.of_joints(f"robot.{name}", names) for name in ("angles", "speeds", "torques"))
  if log.has("gains"):
    kp, kd = np.median(log["gains"], 0)
  free = np.abs(torque) < PLATEAU * np.abs(torque).max(0)
  return Joints(names, log["ctrl"], angle, speed, torque, free * 1.0, kp, kd, servos.torque)


def _left(parts: list[Floats], torque: Floats, free: Floats) -> tuple[float, Floats]:
  """Return the rest of a torque [n], relative to its deviation, and the coefficients of its parts."""
  matrix = np.stack([*parts, np.ones_like(torque)], 1) * free[:, None]
  solution = np.asarray(np.linalg.lstsq(matrix, torque * free, rcond=None)[0], np.float64)
  spread = max(float((torque * free).std()), 1e-9)
  return rms(torque * free - matrix @ solution) / spread, solution


def check(log: Log) -> Iterator[Finding]:
  """Yield targets that reach other joints, signs, gains and saturation."""
  if (own := joints(log)) is None:
    return
  age, _ = steps_late(own)
  count = len(own.target) - OLDEST
  target, angle, speed, torque, free = (
    x[OLDEST - (age if k == 0 else 0) :][:count]
    for k, x in enumerate((own.target, own.angle, own.speed, own.torque, own.free))
  )
  moved, flipped, turned = list[tuple[int, int]](), list[int](), list[int]()
  for j in range(len(own.names)):
    found = [
      _left([target[:, i], angle[:, j], speed[:, j]], torque[:, j], free[:, j]) for i in range(len(own.names))
    ]
    best = min(range(len(found)), key=lambda i: found[i][0])
    if found[best][0] < 0.7 * found[j][0] and found[j][0] > 0.15:
      moved.append((j, best))
    plain, other = (
      _left([target[:, j] + sign * angle[:, j], speed[:, j]], torque[:, j], free[:, j]) for sign in (-1, 1)
    )
    kp, seen = other[1][0], free[:, j].mean()
    if other[0] < CLEARER * plain[0] and abs(kp) > 0.3 * own.kp[j] and seen > 0.5:
      (flipped if kp < 0 else turned).append(j)
  names = own.names
  if len(moved) > 1:
    j, i = moved[0]
    text = f"the torques of {len(moved)} of {len(names)} joints follow the target of another, {names[j]} of"
    yield Finding("joints_out", f"{text} {names[i]}", 2 * len(moved) / len(names))
    return
  for kind, which, what in (("sign_out", flipped, "target"), ("sign_in", turned, "angle")):
    if which:
      yield Finding(kind, f"the torque of {names[which[0]]} follows its {what} with the other sign", 2.0)
      return
  yield from _gains(own, age)
  yield from _held(own)
  yield from _saturated(own)


def steps_late(own: Joints, every: int = 1, first: int = 0) -> tuple[int, Floats]:
  """Return the age of the targets that torques follow [control steps], and the rest of each; see `_left`.

  Of `every` so many control steps one counts, from the `first` on.
  """
  rows = range(OLDEST + first, len(own.target), every)
  free = own.free[rows]
  rests = []
  for age in range(OLDEST):
    target = own.target[[row - age for row in rows]]
    found = [
      _left([*target.T, own.angle[rows, j], own.speed[rows, j]], own.torque[rows, j], free[:, j])[0]
      for j in range(len(own.names))
    ]
    rests.append(np.mean(found))
  return int(np.argmin(rests)), np.array(rests)


def gains(own: Joints, age: int) -> tuple[float, float, float]:
  """Return kp and kd of all servos, relative to those sent, and the share of the torques that they explain.

  The change of the angles is the instrument of the noisy speeds (Wright 1928). The share is a product with
  the torques, in which noise averages out.
  """
  inner = slice(OLDEST, -1)
  target = own.target[OLDEST - age : len(own.target) - 1 - age]
  error = (target - own.angle[inner]) * own.kp
  speed = -own.speed[inner] * own.kd
  change = -(own.angle[OLDEST + 1 :] - own.angle[OLDEST - 1 : -2]) * own.kd
  free, torque = own.free[inner] > 0, own.torque[inner]
  regressors = np.stack([error[free], speed[free]], 1)
  instruments = np.stack([error[free], change[free]], 1)
  kp, kd = np.linalg.lstsq(instruments.T @ regressors, instruments.T @ torque[free], rcond=None)[0]
  share = torque[free] @ regressors @ [kp, kd] / max(torque[free] @ torque[free], 1e-9)
  return float(kp), float(kd), float(share)


def _gains(own: Joints, age: int) -> Iterator[Finding]:
  *ratios, share = gains(own, age)
  for kind, ratio, low in zip(("kp", "kd"), ratios, (1 / GAIN, 0.6), strict=True):
    if share > EXPLAINED and not low < ratio < 1 / low:
      text = f"the torques have {ratio:.2f} times the {kind} that is sent"
      yield Finding(kind, text, abs(np.log(max(ratio, 0.01))))


def _held(own: Joints) -> Iterator[Finding]:
  """Yield a loss of every second command: then even and odd steps follow targets of different ages."""
  (even, rest), (odd, other) = (steps_late(own, 2, first) for first in range(2))
  if rest[even] < CLEARER * rest[odd] and other[odd] < CLEARER * other[even]:
    text = f"the torques of even control steps follow targets of {even} steps ago, of odd ones {odd}"
    yield Finding("held", text, 1.0)


def _saturated(own: Joints) -> Iterator[Finding]:
  largest = np.abs(own.torque).max(0)
  share = 1 - own.free.mean(0)
  worst = int(share.argmax())
  if share[worst] > CLIPPED:
    text = (
      f"{own.names[worst]} has {largest[worst]:.3g} N m in {100 * share[worst]:.0f} % of the control steps"
    )
    yield Finding("torque", f"{text}; in training up to {own.limit[worst]:.3g} N m", share[worst] * 5)


def latency(log: Log) -> float | None:
  """Return the time from the sensors to the torques that answer them [s]; None where `joints` is None.

  The torques tell the whole control steps. The change of the speeds in a step tells the rest: it follows from
  the old and from the new target, each in its part of the step.
  """
  if (own := joints(log)) is None:
    return None
  step, age = timing.step(log), max(steps_late(own)[0], 1)
  return step * (age - 1 + _share(own, age))


def _share(own: Joints, age: int) -> float:
  """Return the share of a control step that the target of `age` steps ago rules, before the next one.

  It is the most likely one. Each joint answers its target by its speed and its angle, beside the response to
  all angles and speeds; an early torque changes the angle more, a late one the speed, as the answer decays.
  """
  first, end = OLDEST, len(own.target) - 1
  older, old, new = (own.target[first - back : end - back] for back in (age + 1, age, age - 1))
  state = np.concatenate([own.angle[first:end], own.speed[first:end], older, np.ones((end - first, 1))], 1)
  basis = np.linalg.qr(state)[0]
  changes = [x[first + 1 :] - x[first:end] for x in (own.speed, own.angle)]
  old, new, *changes = (x - basis @ (basis.T @ x) for x in (old, new, *changes))
  shares = np.linspace(0, 1, 101)
  likely = np.full((len(shares), len(own.names)), -np.inf)
  for x in DECAYS:
    by_speed = np.expm1(x * shares) / np.expm1(x)
    by_angle = (shares - np.exp(-x) * np.expm1(x * shares) / x) / (1 + np.expm1(-x) / x)
    fits = [_fit(part, old, new, y) for part, y in zip((by_speed, by_angle), changes, strict=True)]
    likely = np.maximum(likely, fits[0] + fits[1])
  return float(shares[int(likely.sum(1).argmax())])


def _fit(part: Floats, old: Floats, new: Floats, change: Floats) -> Floats:
  """Return the log likelihood of a change [n, joints] by part * old + (1 - part) * new [parts, joints]."""
  part, rest = part[:, None], 1 - part[:, None]
  size = part**2 * (old * old).sum(0) + 2 * part * rest * (old * new).sum(0) + rest**2 * (new * new).sum(0)
  product = part * (old * change).sum(0) + rest * (new * change).sum(0)
  fit = product / np.sqrt(np.maximum(size * (change * change).sum(0), 1e-24))
  return np.asarray(-np.log1p(-(fit.clip(0, 1 - 1e-9) ** 2)))


def late(log: Log) -> Iterator[Finding]:
  """Yield a latency that the training did not have."""
  settings = log.facts["settings"]
  wanted = settings.get("action_delay", 0.0) + settings.get("action_delay_spread", 0.0)
  allowed = max(wanted, float(log.facts["rate"]["step [s]"]))
  age, whole = timing.sensor_age(log), latency(log)
  if whole is not None and whole > allowed + SLACK:
    sensors = age or 0.0
    kind = "sensor_latency" if sensors > whole / 2 else "actuator_latency"
    part = sensors if kind == "sensor_latency" else whole - sensors
    text = f"{1e3 * part:.1f} ms, {1e3 * whole:.1f} ms in all; training had at most {1e3 * wanted:.0f} ms"
    yield Finding(kind, text, whole / allowed)
  elif whole is None and age is not None and age > allowed + SLACK:
    yield Finding(
      "sensor_latency", f"{1e3 * age:.1f} ms; training had at most {1e3 * wanted:.0f} ms", age / allowed
    )
