"""MuJoCo's soft constraints: impedance, reference acceleration, and the rows that belong to joints.

A row with residual r = J qacc - aref costs 1/2 D r^2 where it acts (manual, chapter Computation, section
Constraint model). Constants are prepared in float64 here; what depends on the state is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physics.kinematics import BALL, FREE
from physics.low_rank import LowRank
from physics.model import Floats, Model
from physics.pairs import ContactPair
from physics.spatial import Quaternion, dot
from physics.trace import Array, Mask, Number, Program, absolute, maximum, minimum, power, sqrt, where

TINY = 1e-15  # mjMINVAL


@dataclass(frozen=True)
class Law:
  """How a constraint responds: stiffness and damping of the reference, impedance by penetration, margin.

  Fields are numbers, or traced values where they differ between the entries of one list.
  """

  stiffness: Number  # K: aref = -B v - K d(r) r
  damping: Number  # B
  d0: Number  # impedance at zero penetration
  rise: Number  # impedance at full width less that at zero
  per_width: Number  # 1 / width [1/m]
  midpoint: Number
  power: Number
  low: Number  # midpoint^(1 - power)
  high: Number  # (1 - midpoint)^(1 - power)
  margin: Number  # [m, rad]

  def impedance(self, position: Number) -> Number:
    """Return the impedance in (0, 1) at a distance less margin [m, rad]."""
    x = minimum(absolute(position) * self.per_width, 1.0)
    rest = 1.0 - x
    shape = where(
      x < self.midpoint, self.low * power(x, self.power), 1.0 - self.high * power(rest, self.power)
    )
    return self.d0 + self.rise * shape

  def reference(self, position: Number, velocity: Number, impedance: Number) -> Number:
    """Return -aref, what the reference acceleration adds to a row's residual."""
    return self.damping * velocity + self.stiffness * (impedance * position)


def law(model: Model, solref: Floats, solimp: Floats, margin: float) -> Law:
  """Prepare a constraint's constants from MuJoCo's parameters."""
  d0, dmax, width, midpoint, exponent = (float(x) for x in solimp)
  d0, dmax = np.clip((d0, dmax), 1e-4, 0.9999).tolist()
  midpoint, exponent = float(np.clip(midpoint, 1e-4, 0.9999)), max(1.0, exponent)
  time, ratio = (float(x) for x in solref)
  if time > 0:
    time = max(time, 2 * model.timestep) if model.refsafe else time
    stiffness, damping = 1 / max(TINY, (dmax * time * ratio) ** 2), 2 / max(TINY, dmax * time)
  else:
    stiffness, damping = -time / max(TINY, dmax**2), -ratio / max(TINY, dmax)
  if width <= TINY or d0 == dmax:
    d0, dmax, width = 0.5 * (d0 + dmax), 0.5 * (d0 + dmax), 1.0
  low, high = midpoint ** (1 - exponent), (1 - midpoint) ** (1 - exponent)
  return Law(stiffness, damping, d0, dmax - d0, 1 / width, midpoint, exponent, low, high, float(margin))


def contact_law(model: Model, pair: ContactPair) -> dict[str, float]:
  """Return the constants of a geom pair's contacts: law, friction, and the weight that makes impedance D.

  D = weight * impedance / (1 - impedance) for each of the four edges of the friction pyramid. A frictionless
  contact is a pyramid of width zero whose four equal edges share its D.
  """
  b1, b2 = (int(model.geom_bodyid[g]) for g in (pair.geom1, pair.geom2))
  inverse_mass = float(model.body_invweight0[b1, 0] + model.body_invweight0[b2, 0])
  fields = vars(law(model, pair.solref, pair.solimp, pair.margin)).copy()
  if pair.condim == 1:
    return fields | {"friction": 0.0, "aspect": 1.0, "weight": 1 / max(TINY, 4 * inverse_mass)}
  mu, mu2 = float(pair.friction[0]), float(pair.friction[1])
  row = 2 * mu * mu / model.impratio * inverse_mass * (1 + mu * mu)
  return fields | {"friction": mu, "aspect": mu2 / mu, "weight": 1 / max(TINY, row)}


@dataclass(frozen=True)
class Row:
  """One constraint on the degrees of freedom of a joint."""

  jacobian: dict[int, Number]
  D: Number  # zero where the row does not act
  bias: Number  # -aref
  loss: float | None = None  # friction loss: the greatest force [N, N m]; None: a one-sided row


class JointRows:
  """Joint limits and friction loss: few, known in advance, unrolled."""

  def __init__(self, program: Program, nv: int, rows: list[Row]) -> None:
    self.nv, self.rows = nv, rows
    self.residual: Array = program.array(max(1, len(rows)))
    self.rate: Array = program.array(max(1, len(rows)))

  def start(self, x: Sequence[Number]) -> None:
    """Note the residuals at qacc = x."""
    self.residual.fill([self._along(row, x) + row.bias for row in self.rows])

  def aim(self, direction: Sequence[Number], _unsolved: Mask) -> None:
    """Note the rates of the residuals along a direction."""
    self.rate.fill([self._along(row, direction) for row in self.rows])

  def move(self, step: Number, _unsolved: Mask) -> None:
    """Move the residuals by a step along the direction."""
    count = len(self.rows)
    moved = [
      r + step * rate for r, rate in zip(self.residual.read(0, count), self.rate.read(0, count), strict=True)
    ]
    self.residual.fill(moved)

  def force(self, _unsolved: Mask) -> list[Number]:
    """Return the constraint forces J^T f [nv] at the noted residuals."""
    force: list[Number] = [0.0] * self.nv
    for i, row in enumerate(self.rows):
      f = self._force(row, self.residual[i])
      for dof, coefficient in row.jacobian.items():
        force[dof] = force[dof] + coefficient * f
    return force

  def slopes(self, step: Number, _unsolved: Mask) -> tuple[Number, Number]:
    """Return the cost's first and second derivative along the direction, a step from the noted residuals."""
    first: Number = 0.0
    second: Number = 0.0
    for i, row in enumerate(self.rows):
      r, rate = self.residual[i] + step * self.rate[i], self.rate[i]
      first = first - self._force(row, r) * rate
      second = second + self._stiffness(row, r) * (rate * rate)
    return first, second

  @property
  def rank(self) -> int:
    """Number of rows that couple degrees of freedom: limits of ball joints."""
    return sum(len(row.jacobian) > 1 for row in self.rows)

  def diagonal(self) -> list[Number]:
    """Return the diagonal [nv] that rows of one degree of freedom add to the Hessian."""
    diagonal: list[Number] = [0.0] * self.nv
    for i, row in enumerate(self.rows):
      if len(row.jacobian) == 1:
        ((dof, coefficient),) = row.jacobian.items()
        stiffness = self._stiffness(row, self.residual[i])
        diagonal[dof] = diagonal[dof] + stiffness * (coefficient * coefficient)
    return diagonal

  def push_hessian(self, correction: LowRank) -> None:
    """Push the columns V of the Hessian V V^T of the other rows."""
    for i, row in enumerate(self.rows):
      if len(row.jacobian) > 1:
        root = sqrt(self._stiffness(row, self.residual[i]))
        correction.push({dof: root * coefficient for dof, coefficient in row.jacobian.items()})

  @staticmethod
  def _along(row: Row, x: Sequence[Number]) -> Number:
    return dot(row.jacobian.values(), [x[dof] for dof in row.jacobian])

  @staticmethod
  def _force(row: Row, r: Number) -> Number:
    force = -(row.D * r)
    if row.loss is None:
      return maximum(force, 0.0)
    return minimum(maximum(force, -row.loss), row.loss)

  @staticmethod
  def _stiffness(row: Row, r: Number) -> Number:
    acts = r < 0.0 if row.loss is None else absolute(row.D * r) < row.loss
    return where(acts, row.D, 0.0)


def joint_rows(model: Model, qpos: list[Number], qvel: list[Number]) -> list[Row]:
  """Return the rows of friction loss and of joint limits, in MuJoCo's order."""
  rows = []
  for dof in range(model.nv):
    loss = float(model.dof_frictionloss[dof])
    if loss > 0 and model.frictionloss_enabled:
      friction = law(model, model.dof_solref[dof], model.dof_solimp[dof], 0.0)
      d = friction.impedance(0.0)
      D = d / (1 - d) / max(TINY, float(model.dof_invweight0[dof]))
      rows.append(Row({dof: 1.0}, D, friction.damping * qvel[dof], loss))
  for joint in range(model.njnt):
    if model.jnt_limited[joint] and model.limit_enabled:
      rows += _limit_rows(model, joint, qpos, qvel)
  return rows


def _limit_rows(model: Model, joint: int, qpos: list[Number], qvel: list[Number]) -> list[Row]:
  at, dof, kind = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]), model.jnt_type[joint]
  low, high = (float(x) for x in model.jnt_range[joint])
  if kind == FREE:
    return []
  if kind == BALL:
    axis, angle = Quaternion.normalize(qpos[at : at + 4]).rotation_vector()
    sign = where(angle < 0.0, 1.0, -1.0)
    return [
      _limit_row(
        model, joint, {dof + k: axis[k] * sign for k in range(3)}, max(low, high) - absolute(angle), qvel
      )
    ]
  below, above = qpos[at] - low, high - qpos[at]
  if high - low <= 2 * float(model.jnt_margin[joint]):
    return [
      _limit_row(model, joint, {dof: 1.0}, below, qvel),
      _limit_row(model, joint, {dof: -1.0}, above, qvel),
    ]
  nearer_low = below < above
  return [_limit_row(model, joint, {dof: where(nearer_low, 1.0, -1.0)}, minimum(below, above), qvel)]


def _limit_row(
  model: Model, joint: int, jacobian: dict[int, Number], distance: Number, qvel: list[Number]
) -> Row:
  limit = law(model, model.jnt_solref[joint], model.jnt_solimp[joint], float(model.jnt_margin[joint]))
  position = distance - limit.margin
  d = limit.impedance(position)
  weight = 1 / max(TINY, float(model.dof_invweight0[model.jnt_dofadr[joint]]))
  velocity = dot(jacobian.values(), [qvel[dof] for dof in jacobian])
  D = where(position < 0.0, weight * d / (1.0 - d), 0.0)
  return Row(jacobian, D, limit.reference(position, velocity, d))


def edge_residuals(normal: Number, first: Number, second: Number) -> tuple[Number, ...]:
  """Return the residuals of the pyramid's four edges from those along normal and friction-scaled tangents."""
  return (normal + first, normal - first, normal + second, normal - second)


def edge_forces(D: Number, residuals: Sequence[Number]) -> tuple[Number, Number, Number]:
  """Return the force along normal and tangents that the edges with negative residual exert."""
  f = [D * maximum(-r, 0.0) for r in edge_residuals(*residuals)]
  return (f[0] + f[1]) + (f[2] + f[3]), f[0] - f[1], f[2] - f[3]


def edge_counts(residuals: Sequence[Number]) -> tuple[Number, ...]:
  """Return the entries (nn, n1, n2, 11, 22) of the pyramid's Hessian over D, counts of the edges that act."""
  acts = [where(r < 0.0, 1.0, 0.0) for r in edge_residuals(*residuals)]
  one, two = acts[0] + acts[1], acts[2] + acts[3]
  return one + two, acts[0] - acts[1], acts[2] - acts[3], one, two


def edge_slopes(D: Number, residuals: Sequence[Number], rates: Sequence[Number]) -> tuple[Number, Number]:
  """Return first and second derivative of the pyramid's cost along a direction."""
  first: Number = 0.0
  second: Number = 0.0
  for r, rate in zip(edge_residuals(*residuals), edge_residuals(*rates), strict=True):
    first = first + minimum(r, 0.0) * rate
    second = second + where(r < 0.0, rate * rate, 0.0)
  return D * first, D * second
