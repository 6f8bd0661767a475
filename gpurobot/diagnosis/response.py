"""Answer of the joints to their targets, in logs without torques: order, signs, lost commands, latency.

A joint's next change of angle follows from its state and from its latest targets, by linear regression.
"""

import numpy as np

from gpurobot.deploy.on_robot import Floats, Servos
from gpurobot.diagnosis import servo, timing
from gpurobot.diagnosis.finding import Finding
from gpurobot.diagnosis.log import Log

TARGETS = 5  # latest targets that count
MOVED = 0.1  # log likelihood of a sample and joint, gained by the targets of other joints
HELD = 100.0  # log likelihood of a log, gained if every second command is lost
FLIPPED = -3.0  # t statistic of a target with the other sign
STILL = 0.001  # power of a target, relative to the others', below which it tells nothing


class Response:
  """Changes of angles, and what they follow."""

  def __init__(self, log: Log) -> None:
    """Look up a log with commands, angles and speeds."""
    self.log, self.names = log, list(Servos.of(log.facts).joints)
    self.angle, self.speed = a, v = [
      log.of_joints(f"robot.{name}", self.names) for name in ("angles", "speeds")
    ]
    self.rows = now = np.arange(TARGETS, len(a) - 1)
    states = np.stack([a[now], a[now - 1], v[now], v[now - 1], np.ones_like(a[now])]).transpose(2, 1, 0)
    self.basis = np.linalg.qr(states)[0]  # [joints, n, 5]
    self.change = self._left((a[now + 1] - a[now]).T[..., None])  # [joints, n, 1]

  def _left(self, x: Floats) -> Floats:
    """Return what the states do not explain of numbers [joints, n, ...]."""
    return np.asarray(x - self.basis @ (self.basis.transpose(0, 2, 1) @ x))

  def _follows(self, target: Floats) -> Floats:
    """Return the log likelihood of each joint's changes [joints] with these targets [steps, joints]."""
    x = np.linalg.qr(self._left(target.T[:, self.rows[:, None] - np.arange(TARGETS)]))[0]
    explained = np.square(x.transpose(0, 2, 1) @ self.change).sum((1, 2))
    share = explained / np.maximum(np.square(self.change).sum((1, 2)), 1e-12)
    return np.asarray(-len(self.rows) * np.log1p(-share.clip(0, 1 - 1e-9)))

  def latency(self) -> float:
    """Return the time from the sensors to the answer of the joints, the most likely one [s]."""
    target = self.log["ctrl"]
    found = [(*servo.share(target, self.angle, self.speed, age), age) for age in range(1, servo.OLDEST)]
    share, _, age = max(found, key=lambda one: one[1])
    return timing.step(self.log) * (age - 1 + share)

  def differs(self) -> Finding | None:
    """Return joints that follow the targets of others, or a loss of every second command."""
    ctrl, count, steps = self.log["ctrl"], len(self.names), np.arange(len(self.log["ctrl"]))
    likely = np.stack([self._follows(np.roll(ctrl, -turn, 1)) for turn in range(count)])
    source, gain = (np.arange(count) + likely.argmax(0)) % count, likely.max(0) - likely[0]
    moved = source != np.arange(count)
    moved &= moved[source]  # coupled joints follow the target of another that follows it as well
    if gain[moved].sum() > MOVED * count * len(self.rows):
      j = int((gain * moved).argmax())
      text = f"{moved.sum()} of {count} joints follow the target of another, {self.names[j]} of"
      return Finding("joints_out", f"{text} {self.names[source[j]]}", 2 * moved.sum() / count)
    lost = [ctrl[np.maximum(steps - (steps % 2 == first), 0)] for first in range(2)]
    gain = max(float(self._follows(own).sum()) for own in lost) - float(likely[0].sum())
    text = f"the motion is e^{gain:.0f} times as likely if every second command is lost"
    return Finding("held", text, 1.0) if gain > HELD else None

  def flipped(self) -> str | None:
    """Return the joint that follows its target with the other sign, if one does.

    The joints share the weights of the latest targets, up to a factor.
    """
    x = self._left(self.log["ctrl"].T[:, self.rows[:, None] - np.arange(TARGETS)])
    weights = np.median([np.linalg.lstsq(*own, rcond=None)[0] for own in zip(x, self.change, strict=True)], 0)
    target = x @ weights
    size = np.maximum(np.square(target).sum((1, 2)), 1e-12)
    slope = (target * self.change).sum((1, 2)) / size
    rest = np.square(self.change - slope[:, None, None] * target).mean((1, 2))
    t = slope * np.sqrt(size / np.maximum(rest, 1e-12)) * (size > STILL * np.median(size))
    return self.names[int(t.argmin())] if t.min() < FLIPPED else None
