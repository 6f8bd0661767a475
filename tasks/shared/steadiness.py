"""Steadiness of a moving robot, as metrics: how much its policy, joints, feet and base shake."""

from collections.abc import Sequence
from math import inf
from typing import Any

import torch
from torch import Tensor

from tasks.shared import quat

AT_LIMIT = 0.99  # part of the largest torque from which a joint is at its limit
NEAR = 0.01  # distance from the end of a joint's range at which it is there, as a part of the range
SHORTEST = 0.01  # path over which a cost of transport means something [m]
BEFORE = 1.0  # time before an episode in which all feet count as alike, as a step is no share of a gait [s]
LIGHTEST = 1e-3  # load on all feet below which their sliding means nothing, over the weight
FEET = 7  # columns of memory for each foot


class Steadiness:
  """Metrics of the joints and the base: `begin` in `Task.control`, `end` in `Task.update`.

  The task computes the output `actuator_force`; its joints have an actuator each, in the same order, and its
  base floats. `memory` is a buffer of the task with `width` columns.
  """

  names: tuple[str, ...] = (
    "action_change",
    "action_jerk",
    "torque_limited",
    "angle_limited",
    "fastest_joint",
    "power",
    "base_jitter",
  )

  @classmethod
  def width(cls, actions: int, feet: int = 0) -> int:
    """Return the number of columns that the memory needs."""
    return len(cls.names) + 2 * actions + 2 + (3 + FEET * feet if feet else 0)

  def __init__(self, task: Any, joints: Sequence[str], memory: Tensor) -> None:
    """Look up the limits and gears of the named joints."""
    self.task: Any = task
    self.angles, self.speeds = task.joints_of(*joints)
    actions = task.num_actions
    sizes = [len(self.names), actions, actions, 2, memory.shape[1] - self.width(actions)]
    self.values, self.action, self.change, self.spin, self.rest = memory.split(sizes, 1)
    model, rows = task.model, [task.model.joint_id(name) for name in joints]
    self.gear = task.constant(model.actuator_gear[:, 0]).abs()
    self.most = AT_LIMIT * task.constant(torque_limits(model))  # [nu]
    low, high = task.constant(model.jnt_range[rows]).unbind(1)
    free = ~task.constant(model.jnt_limited[rows]).bool()
    near = NEAR * (high - low)
    self.low = (low + near).masked_fill(free, -torch.inf)
    self.high = (high - near).masked_fill(free, torch.inf)

  def begin(self) -> None:
    """Compare the action with those before, and note how the base turns."""
    change = self.task.action - self.action
    self.values[:, 0].copy_(change.abs().mean(1))
    self.values[:, 1].copy_((change - self.change).abs().mean(1))
    self.action.copy_(self.task.action)
    self.change.copy_(change)
    self.spin.copy_(self.task.sim.qvel[:, 3:5])

  def end(self) -> None:
    """Measure the step."""
    task, sim, count = self.task, self.task.sim, len(self.gear)
    force, speeds, angles = sim.actuator_force.abs(), sim.qvel[:, self.speeds].abs(), sim.qpos[:, self.angles]
    power = (force * speeds * self.gear).sum(1)
    measured = (
      (force >= self.most).sum(1) / count,
      ((angles <= self.low) | (angles >= self.high)).sum(1) / count,
      speeds.amax(1),
      power,
      torch.hypot(*(sim.qvel[:, 3:5] - self.spin).unbind(1)) / task.dt,
      *self.more(power),
    )
    for column, value in enumerate(measured, start=2):
      self.values[:, column].copy_(value)

  def more(self, power: Tensor) -> tuple[Tensor, ...]:  # noqa: ARG002 (a robot that walks needs it)
    """Return further values [num_envs] of a step of this power [num_envs] [W], by the further `names`."""
    return ()

  def metrics(self) -> dict[str, Tensor]:
    """Return the values [num_envs] of the last step by name; docs/metrics.md has their units."""
    return dict(zip(self.names, self.values.unbind(1), strict=True))


class Walking(Steadiness):
  """The same of a robot of `locomotion`, with its cost of transport and its gait."""

  names = (
    *Steadiness.names,
    "transport_cost",
    "tilt",
    "foot_slip",
    "foot_impact",
    "foot_clearance",
    "stride_rate",
    "duty_difference",
  )

  def __init__(self, task: Any, memory: Tensor) -> None:
    """Take joints and feet as the task names them."""
    super().__init__(task, task.joints, memory)
    self.weight = float(-task.model.gravity[2] * task.model.body_mass.sum())  # [N]
    feet = len(task.feet)
    self.spent, *columns = self.rest.split([3, *FEET * [feet]], 1)  # energy [J], path [m], time [s]
    self.recent, self.impact, self.stood, self.peak, self.cleared, self.strides, self.stance = columns

  def more(self, power: Tensor) -> tuple[Tensor, ...]:
    """Return cost of transport, tilt [rad], slip [m/s], impact, clearance [m], strides [1/s] and duty."""
    task, moves = self.task, self.task.moves().unsqueeze(1)
    speed = torch.hypot(*task.sim.qvel[:, :2].unbind(1))
    self.spent += task.dt * torch.stack([power, speed, torch.ones_like(power)], 1) * moves
    work, path, time = self.spent.unbind(1)
    tilt = quat.upright(task.sim.qpos[:, 3:7]).clamp(-1.0, 1.0).acos()
    touching, landed = task.contacts(), task.flight > 0
    load = self._load()
    slip = torch.hypot(*task.sliding()) * load
    self._land(landed)
    self._swing(touching, landed)
    self.strides += landed * moves
    self.stance += task.dt * touching * moves
    share = self.stance / (BEFORE + time).unsqueeze(1)
    return (
      work / (self.weight * path.clamp(min=SHORTEST)),
      tilt,
      slip.sum(1) / load.sum(1).clamp(min=LIGHTEST),
      self.impact.amax(1),
      self.cleared.mean(1),
      self.strides.mean(1) / time.clamp(min=task.dt),
      share.amax(1) - share.amin(1),
    )

  def _load(self) -> Tensor:
    """Return the forces on the feet over the robot's weight [num_envs, feet]."""
    return self.task.sim.sensordata[:, self.task.touch] / self.weight

  def _land(self, landed: Tensor) -> None:
    """Keep the largest force of each landing, which may peak a step later."""
    force = self._load().maximum(self.impact * ~landed)
    self.impact.copy_(torch.where(landed | (self.recent > 0), force, self.impact))
    self.recent.copy_(landed)

  def _swing(self, touching: Tensor, landed: Tensor) -> None:
    """Keep the largest rise of each foot in its last swing, above the height at which it stood."""
    height = self.task.sim.site_xpos[:, self.task.soles, 2]
    self.cleared.copy_(torch.where(landed, self.peak, self.cleared))
    self.peak.copy_((height - self.stood).maximum(self.peak) * ~touching)
    self.stood.copy_(torch.where(touching, height, self.stood))


def torque_limits(model: Any) -> list[float]:
  """Return the largest force of each actuator, inf if it has no limit."""
  limits = []
  for index, gain in enumerate(abs(model.actuator_gainprm[:, 0]).tolist()):
    most = float(abs(model.actuator_forcerange[index]).max()) if model.actuator_forcelimited[index] else inf
    if model.actuator_ctrllimited[index] and not model.actuator_is_servo[index]:  # of a motor
      most = min(most, gain * float(abs(model.actuator_ctrlrange[index]).max()))
    limits.append(most)
  return limits
