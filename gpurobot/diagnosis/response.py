"""Answer of the joints to their targets, in logs without torques: order, signs, lost commands, latency.

A joint's next change of angle follows from its state and from its latest targets, by linear regression.
"""

import numpy as np

from gpurobot.deploy.on_robot import Floats, Servos
from gpurobot.diagnosis import servo, timing
from gpurobot.diagnosis.finding import Finding
from gpurobot.diagnosis.log import Log

TARGETS = 5  # latest targets that count
MOVED = 1.3  # log likelihood that the targets of other joints gain, a sample
HELD = 100.0  # log likelihood that targets gain if every second one is lost
FLIPPED = -3.0  # t statistic of a target with the other sign


class Response:
  """Changes of angles [n, joints], and the states and targets that they follow."""

  def __init__(self, log: Log) -> None:
    """Look up a log with commands, angles and speeds."""
    self.servos, self.log = Servos.of(log.facts), log
    self.names = list(self.servos.joints)
    self.angle, self.speed = (log.of_joints(f"robot.{name}", self.names) for name in ("angles", "speeds"))
    self.rows = np.arange(TARGETS, len(self.angle) - 1)
    a, v, rows = self.angle, self.speed, self.rows
    parts = [a[rows], a[rows - 1], v[rows], v[rows - 1], np.ones_like(a[rows])]
    self.basis = np.linalg.qr(np.stack(parts, -1).transpose(1, 0, 2))[0]  # of the states [joints, n, 5]
    self.change = self._left((a[rows + 1] - a[rows]).T[..., None])  # [joints, n, 1]

  def _left(self, x: Floats) -> Floats:
    """Return what the states do not explain of numbers [joints, n, ...]."""
    return np.asarray(x - self.basis @ (self.basis.transpose(0, 2, 1) @ x))

  def _latest(self, target: Floats) -> Floats:
    """Return the latest targets [controls, n, TARGETS] at each change."""
    return target.T[:, self.rows[:, None] - np.arange(TARGETS)]

  def _rest(self, target: Floats, joint: int) -> Floats:
    """Return the log of the share of a joint's change that each target [steps, controls] leaves [controls]."""
    basis, y = self.basis[joint], self.change[joint, :, 0]
    x = self._latest(target)
    explained = np.linalg.qr(x - basis @ (basis.T @ x))[0].transpose(0, 2, 1) @ y
    return np.asarray(np.log1p(-np.square(explained).sum(1) / (y @ y)))

  def latency(self) -> float:
    """Return the time from the sensors to the answer of the joints, the most likely one [s]."""
    ones = np.ones_like(self.angle)
    kp, kd, limit = self.servos.kp, self.servos.kd, self.servos.torque
    own = servo.Joints(self.names, self.log["ctrl"], self.angle, self.speed, 0 * ones, ones, kp, kd, limit)
    found = [(*servo.share(own, age), age) for age in range(1, servo.OLDEST)]
    share, _, age = max(found, key=lambda one: one[1])
    return timing.step(self.log) * (age - 1 + share)

  def moved(self) -> Finding | None:
    """Return the joints that follow the targets of others."""
    rests = np.stack([self._rest(self.log["ctrl"], j) for j in range(len(self.names))])
    other = rests.argmin(1)
    moved = np.flatnonzero(other != np.arange(len(other)))
    if np.trace(rests) - rests.min(1).sum() < MOVED or len(moved) < 2:
      return None
    j = int(moved[rests.min(1)[moved].argmin()])
    text = f"{len(moved)} of {len(other)} joints follow the target of another, {self.names[j]} of"
    return Finding("joints_out", f"{text} {self.names[other[j]]}", 2 * len(moved) / len(other))

  def held(self) -> Finding | None:
    """Return a loss of every second command."""
    ctrl, steps = self.log["ctrl"], np.arange(len(self.log["ctrl"]))
    sent = [ctrl, *(ctrl[np.maximum(steps - (steps % 2 == lost), 0)] for lost in range(2))]
    rests = [sum(self._rest(x, j)[j] for j in range(len(self.names))) for x in sent]
    gain = len(self.rows) * (rests[0] - min(rests[1:]))
    if gain < HELD:
      return None
    return Finding("held", f"the motion is e^{gain:.0f} times as likely if every second command is lost", 1.0)

  def flipped(self) -> int | None:
    """Return the joint that follows its target with the other sign, if one does."""
    x = self._left(self._latest(self.log["ctrl"]))
    turned = x.transpose(0, 2, 1)
    weights = np.median(np.linalg.solve(turned @ x + 1e-9 * np.eye(TARGETS), turned @ self.change), 0)
    target = x @ weights
    size = np.maximum(np.square(target).sum((1, 2)), 1e-12)
    slope = (target * self.change).sum((1, 2)) / size
    rest = np.square(self.change - slope[:, None, None] * target).mean((1, 2))
    t = slope * np.sqrt(size / np.maximum(rest, 1e-12))
    return int(t.argmin()) if t.min() < FLIPPED else None
