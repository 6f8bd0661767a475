"""Servos of a robot whose log has no torques, from the motion that the trained model predicts.

Short windows of the log are fitted by multiple shooting (Bock and Plitt 1984): each has its own initial
state, all share the servos.
"""

import copy
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout

from gpurobot.deploy.on_robot import Floats, Servos, gravity
from gpurobot.diagnosis import servo
from gpurobot.diagnosis.finding import Finding, Untested
from gpurobot.diagnosis.log import Log
from gpurobot.diagnosis.response import Response

WINDOWS, LENGTH = 10, 6  # windows, and their control steps
ROUNDS, FEW = 7, 4  # of a fit, and of one that decides between two signs
OUTLIER, FITS = 3.0, 2.5  # deviations of a number; mean square up to which the model explains the motion
NOISE = {"angles": 0.006, "speeds": 0.9, "gyro": 0.12, "gravity": 0.03}  # deviations in the default training
# Servos: ln kp, ln kd, ln torque limit, friction / kp [rad], growth of armature, latency [s].
STEP = np.array([0.1, 0.2, -0.2, 0.003, 0.3, 0.002])  # of derivatives
SPREAD = np.array([1.0, 1.5, 1.0, 0.03, 3.0, 0.01])  # around the training's
DAMPED = 0.2  # least difference of ln kd, and from that of ln kp
LIMIT, WORSE = 0.2, 1.2  # least difference of ln torque limit, and growth of the mean square without it


class Prediction:
  """A model, and windows of a log with their initial states."""

  def __init__(self, log: Log, model: Path) -> None:
    """Read the model, and start at the measured states; raise Untested if they do not fit together."""
    self.model = m = mujoco.MjModel.from_xml_path(str(model))
    joints, self.servos = [m.joint(j).name for j in range(1, m.njnt)], Servos.of(log.facts)
    if m.nv != 6 + len(joints) or not set(joints) <= set(log.joints) or not self.servos.kp.all():
      raise Untested("it needs a free robot with servos, and the angles of all its joints")
    self.driven = [m.joint(name).dofadr[0] for name in self.servos.joints]
    self.actuators = [m.actuator(own["actuator"]).id for own in log.facts["control"]["controls"]]
    own = {name: log.of_joints(f"robot.{name}", joints) for name in ("angles", "speeds")}
    if log.has("robot.quaternion", "robot.gyro"):
      own |= {"gyro": log["robot.gyro"], "gravity": gravity(log["robot.quaternion"])}
    self.noise = np.concatenate([np.full(x.shape[1], NOISE[name]) for name, x in own.items()])
    self.ctrl, self.time = log["ctrl"], log["sensor_time" if log.has("sensor_time") else "time"]
    rows = np.linspace(2, len(self.time) - LENGTH - 3, WINDOWS).astype(int)[:, None] + np.arange(LENGTH + 1)
    self.begin = self.time[rows[:, :1]]
    self.ticks = (self.time[rows] - self.begin) / m.opt.timestep
    self.measured = np.concatenate([*own.values()], 1)[rows] / self.noise  # [windows, rows, columns]
    self.first = np.stack([self._start(own, row) for row in rows[:, 0]])  # [windows, nq + nv]

  def _start(self, own: dict[str, Floats], row: int) -> Floats:
    """Return the state at a row [nq + nv]; the lowest point of the robot rests on the floor."""
    m, near = self.model, slice(row - 1, row + 2)
    data, probe, slip = mujoco.MjData(m), copy.copy(m), np.zeros((3, m.nv))
    data.qpos[7:] = own["angles"][row]
    data.qvel[6:] = (own["angles"][row + 1] - own["angles"][row - 1]) / (self.time[row + 1] - self.time[row - 1])
    if "gyro" in own:
      x, y, z = own["gravity"][near].mean(0)
      data.qpos[3:7] = np.array([1 - z, -y, x, 0]) / np.linalg.norm([1 - z, y, x])
      data.qvel[3:6] = own["gyro"][near].mean(0)
    probe.geom_margin[:] = 1.0  # so that the floor's distance is known [m]
    mujoco.mj_forward(probe, data)
    bodies = m.geom_bodyid[data.contact.geom]
    heights = np.where((bodies == 0).any(1), data.contact.dist, np.inf)
    if np.isfinite(heights).any():
      low = int(heights.argmin())
      mujoco.mj_jac(m, data, slip, None, data.contact.pos[low], bodies[low].max())
      data.qpos[2] -= heights[low]
      data.qvel[:3] -= slip @ data.qvel
    return np.concatenate([data.qpos, data.qvel])

  def _with(self, servos: Floats) -> mujoco.MjModel:
    """Return the model with other servos."""
    m, own, dofs = copy.copy(self.model), self.actuators, self.driven
    kp, kd, limit = np.exp(servos[:3])
    m.actuator_gainprm[own, 0] *= kp
    m.actuator_biasprm[own, 1:3] *= [kp, kd]
    m.actuator_forcerange[own] *= limit
    m.dof_frictionloss[dofs] = np.maximum(m.dof_frictionloss[dofs] + servos[3] * self.servos.kp, 0)
    m.dof_armature[dofs] *= max(1 + servos[4], 0)
    return m

  def _predict(self, changes: Floats, servos: Floats) -> Floats:
    """Return measurements [n, windows, rows, columns] after changes of initial states [n, windows, 2 nv]."""
    m, n, steps = self.model, len(changes), int(self.ticks.max()) + 2
    start, changes = np.tile(self.first, (n, 1)), changes.reshape(n * WINDOWS, -1)
    start[:, m.nq :] += changes[:, m.nv :]
    for row, change in zip(start, changes, strict=True):
      mujoco.mj_integratePos(m, row[: m.nq], change[: m.nv], 1.0)
    start = np.pad(start, ((0, 0), (1, 0)))  # with the time
    # The slope of the area is the mean target of a step.
    area = np.cumsum(self.ctrl[:-1] * np.diff(self.time)[:, None], 0)
    edges, ctrl = self.begin + m.opt.timestep * np.arange(steps + 1), np.zeros((WINDOWS, steps, m.nu))
    for actuator, each in zip(self.actuators, area.T, strict=True):
      at = np.interp(edges, self.time[1:] + servos[5], each)
      ctrl[..., actuator] = np.diff(at, axis=1) / m.opt.timestep
    found, _ = rollout.rollout(self._with(servos), mujoco.MjData(m), start, np.tile(ctrl, (n, 1, 1)))
    found = np.concatenate([start[:, None], found], 1).reshape(n, WINDOWS, -1, start.shape[1])
    tick, window = self.ticks.astype(int), np.arange(WINDOWS)[:, None]
    share = (self.ticks - tick)[..., None]
    x = (1 - share) * found[:, window, tick] + share * found[:, window, tick + 1]
    qpos, qvel = x[..., 1 : 1 + m.nq], x[..., 1 + m.nq :]
    numbers = [qpos[..., 7:], qvel[..., 6:], qvel[..., 3:6], gravity(qpos[..., 3:7])]
    return np.concatenate(numbers, -1)[..., : len(self.noise)] / self.noise

  def fit(self, latency: float, rounds: int = ROUNDS) -> tuple[Floats, float, float]:
    """Return the servos, the mean square of what they leave, and that with the training's torque limits.

    Gauss and Newton's method from the training's servos; outliers weigh less, as Huber's.
    """
    nv, k = self.model.nv, len(STEP)
    spread = np.repeat([0.01, 0.1, 1.0, 0.3, 1.0, 30.0], [3, 3, nv - 6] * 2)  # of the initial states
    step, x = np.repeat([0.003, 0.1], nv), np.zeros((WINDOWS, 2 * nv))
    start = servos = np.array([0, 0, 0, 0, 0, latency])
    for _ in range(rounds):
      base, *moved = self._predict(x + np.pad(np.diag(step), ((1, 0), (0, 0)))[:, None], servos)
      others = [self._predict(x[None], servos + own)[0] for own in np.diag(STEP)]
      left = (self.measured - base).reshape(WINDOWS, -1, 1)
      weight = np.maximum(1, np.abs(left) / OUTLIER) ** -0.5
      slopes = np.stack([own - base for own in (*moved, *others)], -1).reshape(WINDOWS, -1, 2 * nv + k)
      slopes = slopes * weight * np.concatenate([spread / step, SPREAD / STEP])
      turned = slopes.transpose(0, 2, 1)
      matrix, right = turned @ slopes, (turned @ (left * weight))[..., 0]
      right[:, : 2 * nv] -= x / spread
      inner, cross = matrix[:, : 2 * nv, : 2 * nv] + np.eye(2 * nv), matrix[:, : 2 * nv, 2 * nv :]
      solved = np.linalg.solve(inner, np.concatenate([cross, right[:, : 2 * nv, None]], 2))
      # Only the servos are unknown in what the windows' own states leave (Schur's complement).
      both = np.concatenate([matrix[:, 2 * nv :, 2 * nv :], right[:, 2 * nv :, None]], 2)
      both = (both - cross.transpose(0, 2, 1) @ solved).sum(0)
      ahead = np.linalg.solve(both[:, :k] + np.eye(k), both[:, k] - (servos - start) / SPREAD)
      servos = servos + SPREAD * ahead.clip(-0.6, 0.6)
      x = x + spread * (solved[..., k] - solved[..., :k] @ ahead).clip(-3, 3)
    left = [self.measured - self._predict(x[None], servos * own)[0] for own in (1, [1, 1, 0, 1, 1, 1])]
    square, plain = (float(np.square(own.clip(-OUTLIER, OUTLIER)).mean()) for own in left)
    return servos, square, plain


def check(log: Log, model: Path | None) -> Iterator[Finding]:
  """Yield what the motion of a log without torques shows; raise Untested if no model explains it."""
  response = Response(log)
  late, joint = response.latency(), response.flipped()
  if found := response.moved() or response.held():
    yield found
  elif joint is not None:
    yield _sign(log, model, response.names[joint], late)
  elif model is None:
    yield from servo.late(log, late)
  else:
    yield from _servos(log, model, late)


def _sign(log: Log, model: Path | None, joint: str, late: float) -> Finding:
  """Return the flipped sign of a joint, of its messages or of its targets, as the model explains better."""
  own, names = np.array(log.joints) == joint, np.array(Servos.of(log.facts).joints)
  changes = {
    "sign_out": {"ctrl": np.where(names == joint, -1, 1) * log["ctrl"]},
    "sign_in": {key: np.where(own, -1, 1) * log[key] for key in ("robot.angles", "robot.speeds")},
  }
  if model is None:
    raise Untested(f"{joint} moves against its target: robot.xml would tell the message from the target")
  squares = {}
  for kind, change in changes.items():
    other = dataclasses.replace(log, columns={**log.columns, **change})
    squares[kind] = Prediction(other, model).fit(late, FEW)[1]
  kind = min(squares, key=lambda name: squares[name])
  return Finding(kind, f"{joint} moves against its target, the rest as if its {kind} were flipped", 2.0)


def _servos(log: Log, model: Path, late: float) -> Iterator[Finding]:
  """Yield gains, torque limits and latency that differ."""
  servos, square, plain = Prediction(log, model).fit(late)
  if square > FITS:
    raise Untested("robot.xml does not explain the motion")
  kp, kd, limit = (float(own) for own in servos[:3])
  damped = min(abs(kd), abs(kd - kp)) if kd * (kd - kp) > 0 else 0.0  # both grow if the inertia differs
  sizes = {"kp": abs(kp) / np.log(servo.GAIN), "kd": damped / DAMPED}
  kind = max(sizes, key=lambda name: sizes[name])
  if sizes[kind] > 1:
    text = f"the motion shows {np.exp(kp):.2f} times the kp, {np.exp(kd):.2f} times the kd"
    yield Finding(kind, text, abs(kp) if kind == "kp" else damped)
  if limit < -LIMIT and plain > WORSE * square:
    yield Finding("torque", f"the motion shows {np.exp(limit):.2f} times the torque limit", -limit)
  yield from servo.late(log, float(servos[-1]))
