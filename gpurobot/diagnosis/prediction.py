"""Motion of a robot whose log has no torques, as the trained model predicts it.

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

WINDOWS, LENGTH = 14, 4  # windows, and their control steps
ROUNDS, FEW = 7, 4  # of a fit, and of one that decides between two causes
OUTLIER, FITS = 3.0, 2.5  # deviations of a number; mean square up to which the model explains the motion
NOISE = {"angles": 0.006, "speeds": 0.9, "gyro": 0.12, "gravity": 0.03}  # deviations in the default training
# Servos: ln kp, ln kd, ln torque limit, friction / kp [rad], latency [s].
STEP = np.array([0.1, 0.2, -0.2, 0.003, 0.002])  # of derivatives
SPREAD = np.array([1.0, 1.5, 1.0, 0.01, 0.01])  # around the training's
UNLIMITED = np.array([1, 1, 1e-6, 1, 1])  # keeps the training's torque limits
GAIN, BOTH = 0.2, 0.4  # least difference of ln kp from ln kd, and of both, which the inertia changes as well
WORSE = 1.2  # growth of the mean square without other torque limits


class Prediction:
  """A model, windows of a log, and the states and servos that explain them."""

  def __init__(self, log: Log, model: Path, late: float) -> None:
    """Start at the measured states, and a latency of about `late` [s]; raise Untested for another model."""
    self.model = m = mujoco.MjModel.from_xml_path(str(model))
    joints, self.servos = [m.joint(j).name for j in range(1, m.njnt)], Servos.of(log.facts)
    if m.nv != 6 + len(joints) or not set(joints) <= set(log.joints):
      raise Untested("it needs a free robot, and the angles of all its joints")
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
    self.states = np.zeros((WINDOWS, 2 * m.nv))  # changes of the first ones, by the fit
    self.found = self.trained = np.array([0, 0, 0, 0, late])  # servos: of the fit, and before it

  def _start(self, own: dict[str, Floats], row: int) -> Floats:
    """Return the state at a row [nq + nv]; the lowest point of the robot rests on the floor."""
    m, near = self.model, slice(row - 1, row + 2)
    data, probe, slip = mujoco.MjData(m), copy.copy(m), np.zeros((3, m.nv))
    data.qpos[7:], ends = own["angles"][row], [row - 1, row + 1]
    data.qvel[6:] = np.diff(own["angles"][ends], axis=0) / np.diff(self.time[ends])
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
    return m

  def _predict(self, states: Floats, servos: Floats) -> Floats:
    """Return measurements [n, windows, rows, columns] for changes of the states [n, windows, 2 nv]."""
    m, n, steps = self.model, len(states), int(self.ticks.max()) + 2
    start, states = np.tile(self.first, (n, 1)), states.reshape(n * WINDOWS, -1)
    start[:, m.nq :] += states[:, m.nv :]
    for row, change in zip(start, states, strict=True):
      mujoco.mj_integratePos(m, row[: m.nq], change[: m.nv], 1.0)
    start = np.pad(start, ((0, 0), (1, 0)))  # with the time
    # The slope of the area is the mean target of a step.
    area = np.cumsum(self.ctrl[:-1] * np.diff(self.time)[:, None], 0)
    edges, ctrl = self.begin + m.opt.timestep * np.arange(steps + 1), np.zeros((WINDOWS, steps, m.nu))
    for actuator, each in zip(self.actuators, area.T, strict=True):
      at = np.interp(edges, self.time[1:] + servos[4], each)
      ctrl[..., actuator] = np.diff(at, axis=1) / m.opt.timestep
    found, _ = rollout.rollout(self._with(servos), mujoco.MjData(m), start, np.tile(ctrl, (n, 1, 1)))
    found = np.concatenate([start[:, None], found], 1).reshape(n, WINDOWS, -1, start.shape[1])
    tick, window = self.ticks.astype(int), np.arange(WINDOWS)[:, None]
    share = (self.ticks - tick)[..., None]
    x = (1 - share) * found[:, window, tick] + share * found[:, window, tick + 1]
    qpos, qvel = x[..., 1 : 1 + m.nq], x[..., 1 + m.nq :]
    numbers = [qpos[..., 7:], qvel[..., 6:], qvel[..., 3:6], gravity(qpos[..., 3:7])]
    return np.concatenate(numbers, -1)[..., : len(self.noise)] / self.noise

  def fit(self, rounds: int, spread: Floats = SPREAD) -> float:
    """Improve states and servos, and return the mean square of what they leave; `spread` of the servos.

    Gauss and Newton's method; outliers weigh less, as Huber's.
    """
    n, k, step = 2 * self.model.nv, len(STEP), np.repeat([0.003, 0.1], self.model.nv)
    far = np.repeat([0.01, 0.1, 1.0, 0.3, 1.0, 30.0], [3, 3, n // 2 - 6] * 2)  # spread of the first states
    for _ in range(rounds):
      x, servos = self.states, self.found
      base, *moved = self._predict(x + np.pad(np.diag(step), ((1, 0), (0, 0)))[:, None], servos)
      moved += [self._predict(x[None], servos + own)[0] for own in np.diag(STEP)]
      left = (self.measured - base).reshape(WINDOWS, -1, 1)
      weight = np.maximum(1, np.abs(left) / OUTLIER) ** -0.5
      slopes = np.stack([own - base for own in moved], -1).reshape(WINDOWS, -1, n + k)
      slopes = slopes * weight * np.concatenate([far / step, spread / STEP])
      whole = slopes.transpose(0, 2, 1) @ np.concatenate([slopes, left * weight], 2)
      whole[:, :n, -1] -= x / far
      solved = np.linalg.solve(whole[:, :n, :n] + np.eye(n), whole[:, :n, n:])
      # The servos explain what the windows' own states leave (Schur's complement).
      both = (whole[:, n:, n:] - whole[:, n:, :n] @ solved).sum(0)
      ahead = np.linalg.solve(both[:, :k] + np.eye(k), both[:, k] - (servos - self.trained) / spread)
      self.found = servos + spread * ahead.clip(-0.6, 0.6)
      self.states = x + far * (solved[..., k] - solved[..., :k] @ ahead).clip(-3, 3)
    left = self.measured - self._predict(self.states[None], self.found)[0]
    return float(np.square(left.clip(-OUTLIER, OUTLIER)).mean())


def check(log: Log, model: Path) -> Iterator[Finding]:
  """Yield what the motion of a log without torques shows; raise Untested if no model explains it."""
  if not model.is_file() or not Servos.of(log.facts).kp.all():
    raise Untested("it needs servos, and robot.xml of the export")
  response = Response(log)
  late, joint = response.latency(), response.flipped()
  if found := response.differs():
    yield found
  elif joint is not None:
    yield _sign(log, model, joint, late)
  else:
    yield from _servos(log, model, late)


def _sign(log: Log, model: Path, joint: str, late: float) -> Finding:
  """Return the flipped sign of a joint, of its messages or of its targets, as the model explains better."""
  sent, read = (
    np.where(np.array(names) == joint, -1, 1) for names in (Servos.of(log.facts).joints, log.joints)
  )
  changes = {
    "sign_out": {"ctrl": sent * log["ctrl"]},
    "sign_in": {key: read * log[key] for key in ("robot.angles", "robot.speeds")},
  }
  logs = {kind: dataclasses.replace(log, columns={**log.columns, **own}) for kind, own in changes.items()}
  left = {kind: Prediction(own, model, late).fit(FEW) for kind, own in logs.items()}
  kind, other = sorted(left, key=lambda name: left[name])
  text = f"{joint} moves against its target; the model leaves {left[kind]:.2f} if so, else {left[other]:.2f}"
  return Finding(kind, text, 2.0)


def _servos(log: Log, model: Path, late: float) -> Iterator[Finding]:
  """Yield gains, latency and torque limits that differ."""
  own = Prediction(log, model, late)
  if (square := own.fit(ROUNDS)) > FITS:
    raise Untested("robot.xml does not explain the motion")
  kp, kd, limit = own.found[:3].tolist()
  yield from (delays := list(servo.late(log, float(own.found[-1]))))
  own.found = own.found * UNLIMITED
  if not delays and limit < -GAIN and own.fit(FEW, SPREAD * UNLIMITED) > WORSE * square:
    yield Finding("torque", f"the motion shows {np.exp(limit):.2f} times the torque limit", -limit)
  elif abs(kd - kp) > GAIN or min(abs(kp), abs(kd)) > BOTH:
    kind = "kp" if abs(kp) > abs(kd) or abs(kd - kp) < GAIN else "kd"
    text = f"the motion shows {np.exp(kp):.2f} times the kp, {np.exp(kd):.2f} times the kd"
    yield Finding(kind, text, abs(kp if kind == "kp" else kd))
