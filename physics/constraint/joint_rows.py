"""Constraint rows of equalities, limits and friction loss, with their residuals for the solver.

A row with residual r = J qacc - aref costs 1/2 D r^2 where it acts (manual, chapter Computation, section
Constraint model).
"""

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from physics.algebra.spatial import MINVAL, dot
from physics.constraint.cone import NO_GROWTH, Growth, GrowthSum, Line, spring_growth
from physics.trace.trace import (
  Array,
  Mask,
  Number,
  Program,
  Truth,
  is_finite,
  maximum,
  minimum,
  sqrt,
  where,
)


class HessianSum(Protocol):
  """A sum of the part of the Newton step's Hessian that couples degrees of freedom."""

  def push(self, columns: Sequence[Mapping[int, Number]]) -> None:
    """Add V V^T for columns V [nv], each given by degree of freedom."""


@dataclass(frozen=True)
class ConstraintRow:
  """One scalar constraint: its residual is J qacc - aref, its force -D times that, within bounds."""

  jacobian: dict[int, Number]  # J, by degree of freedom
  D: Number  # zero where the row does not act
  bias: Number  # -aref
  low: Number = -math.inf  # bounds of the force [N, N m]: (0, inf) of a limit,
  high: Number = math.inf  # (-loss, loss) of friction; an equality has none
  limit: tuple[str, int] | None = None  # "joint" or "tendon" that the row limits, and its number
  position: Number = 0.0  # of a limit: distance less margin [m, rad]
  tendons: Mapping[int, Number] = field(default_factory=dict)  # force along spatial ones by a unit of this

  @property
  def is_friction(self) -> bool:
    """Whether the row is the friction loss of a joint or tendon."""
    return is_finite(self.high)

  def along(self, x: Sequence[Number]) -> Number:
    """Return J x for x [nv]."""
    return dot(self.jacobian.values(), [x[dof] for dof in self.jacobian])

  def force(self, residual: Number) -> Number:
    """Return the force [N, N m] at a residual."""
    force = -(self.D * residual)
    if is_finite(self.low):
      force = maximum(force, self.low)
    return minimum(force, self.high) if is_finite(self.high) else force

  @property
  def zone(self) -> tuple[Number, Number]:
    """The residuals between which the force is within its bounds."""
    if self.is_friction:
      width = self.high / maximum(self.D, MINVAL)
      return -width, width
    return -math.inf, 0.0 if is_finite(self.low) else math.inf

  def stiffness(self, residual: Number) -> Number:
    """Return the negated derivative of the force: D where the force is between its bounds, else zero."""
    force = -(self.D * residual)
    above = force > self.low if is_finite(self.low) else True
    below = force < self.high if is_finite(self.high) else True
    return where(above & below, self.D, 0.0)


class JointRows:
  """The rows of equalities, limits and friction loss: few, known in advance, unrolled."""

  def __init__(self, program: Program, nv: int, rows: list[ConstraintRow]) -> None:
    self.program, self.nv, self.rows = program, nv, rows
    # Computed here, not in every step of the line search, which leaves out limits that no lane has reached.
    self.zones = [row.zone for row in rows]
    self.limits = [i for i, row in enumerate(rows) if row.limit]
    self.at_limit: Truth = functools.reduce(operator.or_, [rows[i].D > 0.0 for i in self.limits], False)
    self.held: dict[int, Array] = {}  # forces by row that noslip found; the residuals give the others
    self.residual: Array = program.array(max(1, len(rows)))
    self.rate: Array = program.array(max(1, len(rows)))

  def start(self, x: Sequence[Number]) -> None:
    """Store the residuals at qacc = x [nv]."""
    self.residual.fill([row.along(x) + row.bias for row in self.rows])

  def aim(self, direction: Sequence[Number], _unsolved: Mask) -> Line:
    """Return the line from qacc along a direction [nv]."""
    self.rate.fill([row.along(direction) for row in self.rows])
    return Line(self._move, self._growth)

  def _move(self, step: Number, _unsolved: Mask) -> None:
    count = len(self.rows)
    moved = [
      r + step * rate for r, rate in zip(self.residual.read(0, count), self.rate.read(0, count), strict=True)
    ]
    self.residual.fill(moved)

  def force(self, _unsolved: Mask) -> list[Number]:
    """Return the constraint forces J^T f [nv] at the stored residuals (MuJoCo's `mj_constraintUpdate`)."""
    force: list[Number] = [0.0] * self.nv
    for i, row in enumerate(self.rows):
      f = self.row_force(i)
      for dof, coefficient in row.jacobian.items():
        force[dof] = force[dof] + coefficient * f
    return force

  def row_force(self, index: int) -> Number:
    """Return the force [N, N m] of one row: at the stored residuals, or as noslip holds it."""
    return self.held[index][0] if index in self.held else self.rows[index].force(self.residual[index])

  def _growth(self, step: Number, searching: Mask) -> Growth:
    sums = NO_GROWTH
    for i, row in enumerate(self.rows):
      if not row.limit:
        sums = sums + self._row_growth(i, step)
    if not self.limits:
      return sums
    of_limits = GrowthSum(self.program)
    with self.program.when_any(self.at_limit & searching):
      for i in self.limits:
        of_limits.add(self._row_growth(i, step))
    return sums + of_limits.total()

  def _row_growth(self, index: int, step: Number) -> Growth:
    row, zone = self.rows[index], self.zones[index]
    return spring_growth(self.residual[index], self.rate[index], step, row.D, zone)

  @property
  def rank(self) -> int:
    """Number of rows that couple degrees of freedom."""
    return len(self.coupled())

  def diagonal(self) -> list[Number]:
    """Return the diagonal [nv] that rows of one degree of freedom add to the Hessian."""
    diagonal: list[Number] = [0.0] * self.nv
    for i, row in enumerate(self.rows):
      if len(row.jacobian) == 1:
        ((dof, coefficient),) = row.jacobian.items()
        stiffness = row.stiffness(self.residual[i])
        diagonal[dof] = diagonal[dof] + stiffness * (coefficient * coefficient)
    return diagonal

  def coupled(self) -> list[ConstraintRow]:
    """Return the rows that couple degrees of freedom: limits of ball joints, equalities, tendons."""
    return [row for row in self.rows if len(row.jacobian) > 1]

  def push_hessian(self, to: HessianSum) -> None:
    """Push the columns V [nv] of the Hessian V V^T of the rows that couple degrees of freedom."""
    for i, row in enumerate(self.rows):
      if len(row.jacobian) > 1:
        root = sqrt(row.stiffness(self.residual[i]))
        to.push([{dof: root * coefficient for dof, coefficient in row.jacobian.items()}])
