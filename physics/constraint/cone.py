"""Friction cones: the cost of a contact as a function of its residuals.

A contact has up to six rows: its normal, two tangents, the spin about the normal, the rolling about the
tangents (condim 1, 3, 4 or 6 of them), all but the normal scaled by their friction coefficients. With the
residuals r = J qacc - aref, a pyramid has edges with residuals r0 + rj and r0 - rj, each with the cost
D / 2 times its square where negative. The elliptic cone's cost follows from the distance to it (manual,
chapter Computation, sections Contact and Constraint model).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from physics.algebra.spatial import dot
from physics.constraint.stick import Friction, stick_in_turn, stick_together
from physics.trace.trace import Mask, Number, Program, Truth, is_finite, maximum, minimum, negate, sqrt, where

SMALL = 1e-12  # residual [m/s^2, rad/s^2] along the tangents that counts as zero
PIVOT = 0.01  # the pyramid's counts are small integers: a lesser pivot is a rounding residue of zero


@dataclass(frozen=True)
class Growth:
  """Growth of a convex cost over a step along a direction; the first two are not negative."""

  beyond_tangent: Number  # cost at the step, less the value of its tangent from step 0
  slope: Number  # slope at the step, less the slope at step 0
  curvature: Number  # at the step

  def __add__(self, other: Growth) -> Growth:
    return Growth(
      self.beyond_tangent + other.beyond_tangent,
      self.slope + other.slope,
      self.curvature + other.curvature,
    )

  def __mul__(self, factor: Number) -> Growth:
    return Growth(self.beyond_tangent * factor, self.slope * factor, self.curvature * factor)

  def replaced(self, mask: Truth, other: Growth) -> Growth:
    """Return the other growth where the mask holds; the curvature is the same."""
    beyond = where(mask, other.beyond_tangent, self.beyond_tangent)
    return Growth(beyond, where(mask, other.slope, self.slope), self.curvature)


@dataclass(frozen=True)
class Line:
  """A line from the solver's qacc along a direction, with the rates of the residuals."""

  move: Callable[[Number, Mask], None]  # move the residuals by a step, in unsolved lanes
  growth: Callable[[Number, Mask], Growth]  # growth of the cost over a step, in lanes that search


class GrowthSum:
  """A sum of growths, to which blocks add."""

  def __init__(self, program: Program) -> None:
    self.values = program.array(3)
    self.values.fill([0.0] * 3)

  def add(self, growth: Growth) -> None:
    """Add a growth."""
    total = self.total() + growth
    self.values.fill([total.beyond_tangent, total.slope, total.curvature])

  def total(self) -> Growth:
    """Return the sum."""
    return Growth(*self.values.read())


NO_GROWTH = Growth(0.0, 0.0, 0.0)
ONE_SIDED = (-math.inf, 0.0)  # the zone of a spring that only pushes


def spring_growth(
  residual: Number, rate: Number, step: Number, D: Number = 1.0, zone: tuple[Number, Number] = ONE_SIDED
) -> Growth:
  """Return the growth of a cost with the slope D r for residuals r of the zone, and D times its ends beyond.

  The change of a spring that acts at both ends is formed from the step alone, without r, which may be larger
  by orders of magnitude. The cost grows by the product of two numbers of one sign.
  """
  low, high = zone
  held, is_bounded = residual, (is_finite(low), is_finite(high))
  if is_bounded[0]:
    held = maximum(held, low)
  if is_bounded[1]:
    held = minimum(held, high)
  reach = step * rate + (residual - held)  # change of `held`, if the zone had no ends
  change, curvature = reach, D * (rate * rate)
  if is_bounded[0]:
    change, curvature = maximum(change, low - held), where(low - held < reach, curvature, 0.0)
  if is_bounded[1]:
    change, curvature = minimum(change, high - held), where(reach < high - held, curvature, 0.0)
  force = D * change
  return Growth(force * (reach - 0.5 * change), force * rate, curvature)


class Fields(Protocol):
  """A contact's fields: D, and the constants of its cone."""

  def __getitem__(self, field: str, /) -> Any: ...


class Pyramid:
  """The pyramidal cone: two opposite edges for each row of friction; without friction, a single edge."""

  friction_damping = "damping"  # field with the damping of the rows of friction

  def __init__(self, dim: int) -> None:
    self.dim = dim

  def constants(self, condim: int, ratio: Number) -> dict[str, Number]:  # noqa: ARG002 (the pyramid's D has it)
    """Return the constants of a contact with `condim` rows: for every row of friction whether it has it.

    A frictionless one has all, with zero width. `ratio` is the normal's D over friction's.
    """
    return {f"share{j}": float(condim == 1 or j < condim) for j in range(1, self.dim)}

  def softness(self, condim: int, ratio: Number, mu: Number) -> Number:
    """Return 1 / D of every edge relative to a frictionless row, which splits its D among flat edges."""
    return max(1, 2 * (self.dim - 1)) if condim == 1 else 2.0 / ratio * (1.0 + mu * mu)

  def edges(self, condim: int) -> int:
    """Return the number of edges: two for each row of friction, all of them without friction."""
    return max(1, 2 * ((self.dim if condim == 1 else condim) - 1))

  def force(self, contact: Fields, residual: Sequence[Number]) -> list[Number]:
    """Return the force along every row [dim] (MuJoCo's `efc_force`)."""
    if self.dim == 1:
      return [contact["D"] * maximum(-residual[0], 0.0)]
    normal: Number = 0.0
    friction = []
    for j in range(1, self.dim):
      D = contact["D"] * contact[f"share{j}"]
      up, down = (D * maximum(-edge, 0.0) for edge in _edges(residual, j))
      normal = normal + (up + down)
      friction.append(up - down)
    return [normal, *friction]

  def grip(self, contact: Fields, residual: Sequence[Number]) -> list[Number]:
    """Return the largest force along every row of friction [dim - 1]: the sum of its two edges."""
    edges = [_edges(residual, j) for j in range(1, self.dim)]
    D = [contact["D"] * contact[f"share{j}"] for j in range(1, self.dim)]
    return [d * (maximum(-up, 0.0) + maximum(-down, 0.0)) for d, (up, down) in zip(D, edges, strict=True)]

  def stick(
    self,
    program: Program,  # noqa: ARG002
    block: Friction,
    force: Sequence[Number],
    grip: Sequence[Number],
  ) -> list[Number]:
    """Return the forces [dim - 1] that stop the slip, row by row (MuJoCo's `mj_solNoSlip`).

    `force` are the forces now, `grip` the largest ones that the normal force allows.
    """
    return stick_in_turn(block, force, grip)

  def growth(
    self, contact: Fields, residual: Sequence[Number], rate: Sequence[Number], step: Number
  ) -> Growth:
    """Return the cost's growth over a step: residuals [dim] change at `rate`."""
    if self.dim == 1:
      return spring_growth(residual[0], rate[0], step) * contact["D"]
    sums = NO_GROWTH
    for j in range(1, self.dim):
      edges = zip(_edges(residual, j), _edges(rate, j), strict=True)
      up, down = (spring_growth(edge, speed, step) for edge, speed in edges)
      sums = sums + (up + down) * contact[f"share{j}"]
    return sums * contact["D"]

  def hessian(self, contact: Fields, residual: Sequence[Number]) -> dict[tuple[int, int], Number]:
    """Return the entries i <= j of the cost's Hessian [dim, dim] over D: counts of the edges that act.

    Missing entries vanish.
    """
    if self.dim == 1:
      return {(0, 0): where(residual[0] < 0.0, 1.0, 0.0)}
    entries: dict[tuple[int, int], Number] = {(0, 0): 0.0}
    for j in range(1, self.dim):
      up, down = (where(edge < 0.0, contact[f"share{j}"], 0.0) for edge in _edges(residual, j))
      entries[0, j], entries[j, j] = up - down, up + down
      entries[0, 0] = entries[0, 0] + entries[j, j]
    return entries

  def root(self, contact: Fields, residual: Sequence[Number]) -> list[list[Number]]:
    """Return columns c [dim] with sum c c^T = Hessian over D: its Cholesky factor."""
    rest, columns = self.hessian(contact, residual), []
    for k in range(self.dim):
      vanishes = rest[k, k] < PIVOT
      per = where(vanishes, 0.0, 1.0 / sqrt(where(vanishes, 1.0, rest[k, k])))
      column = [rest.get((k, j), 0.0) * per if j >= k else 0.0 for j in range(self.dim)]
      columns.append(column)
      for i in range(k + 1, self.dim):
        for j in range(i, self.dim):
          rest[i, j] = rest.get((i, j), 0.0) - column[i] * column[j]
    return columns


def _edges(values: Sequence[Number], j: int) -> tuple[Number, Number]:
  """Return the two edges that row j of friction has with the normal: sum and difference."""
  return values[0] + values[j], values[0] - values[j]


class Elliptic:
  """The elliptic cone. In the scaled rows it is round: it acts where r0 is less than the tangents' length T.

  Where the residual lies in the polar cone, r0 <= -ratio T, every row acts as a spring: with D along the
  normal, and D ratio along the others. Between, the cost is D ratio / (1 + ratio) (r0 - T)^2 / 2.
  """

  friction_damping = "friction_damping"

  def __init__(self, dim: int) -> None:
    self.dim = dim

  def constants(self, condim: int, ratio: Number) -> dict[str, Number]:
    """Return friction's D over the normal's; without friction, any value works."""
    return {"ratio": 1.0 if condim == 1 else ratio}

  def softness(self, condim: int, ratio: Number, mu: Number) -> Number:  # noqa: ARG002 (the normal has its own D)
    """Return 1 / D of the normal relative to a frictionless row."""
    return 1.0

  def edges(self, condim: int) -> int:  # noqa: ARG002 (the normal has its own row)
    """Return one: the normal has its own row."""
    return 1

  def force(self, contact: Fields, residual: Sequence[Number]) -> list[Number]:
    """Return the force along every row [dim] (MuJoCo's `efc_force`)."""
    cone = _Zones(contact["ratio"], residual)
    slides = cone.stiffness * (residual[0] - cone.length)
    normal = where(cone.polar, residual[0], slides)
    friction = [
      where(cone.polar, contact["ratio"] * x, -(slides * t))
      for x, t in zip(residual[1:], cone.unit, strict=True)
    ]
    return [where(cone.acts, -(contact["D"] * f), 0.0) for f in (normal, *friction)]

  def grip(self, contact: Fields, residual: Sequence[Number]) -> list[Number]:
    """Return the largest force along every row of friction [dim - 1]: the normal force."""
    return self.force(contact, residual)[:1] * (self.dim - 1)

  def stick(
    self, program: Program, block: Friction, force: Sequence[Number], grip: Sequence[Number]
  ) -> list[Number]:
    """Return the forces [dim - 1] that stop the slip, all together."""
    return stick_together(program, block, force, grip[0])

  def growth(
    self, contact: Fields, residual: Sequence[Number], rate: Sequence[Number], step: Number
  ) -> Growth:
    """Return the cost's growth over a step: residuals [dim] change at `rate`."""
    ratio = contact["ratio"]
    ahead = [r + step * speed for r, speed in zip(residual, rate, strict=True)]
    here, there = _Zones(ratio, residual), _Zones(ratio, ahead)
    (slope_here, _), (slope, curvature) = here.slopes(residual, rate), there.slopes(ahead, rate)
    beyond = there.cost(ahead) - here.cost(residual) - step * slope_here
    growth = Growth(beyond, slope - slope_here, curvature)
    # Costs of one zone are not subtracted, as little of the difference would be left.
    side, springs = here.side_growth(there, rate, step), rate[0] * rate[0] + ratio * dot(rate[1:], rate[1:])
    polar = Growth(0.5 * (step * step) * springs, step * springs, springs)
    growth = growth.replaced(here.slides & there.slides, side)
    return growth.replaced(here.polar & there.polar & here.acts & there.acts, polar) * contact["D"]

  def hessian(self, contact: Fields, residual: Sequence[Number]) -> dict[tuple[int, int], Number]:
    """Return the entries i <= j of the cost's Hessian [dim, dim] over D."""
    cone = _Zones(contact["ratio"], residual)
    lean, spread = cone.coefficients()
    entries: dict[tuple[int, int], Number] = {(0, 0): cone.normal_stiffness()}
    for i, t in enumerate(cone.unit, start=1):
      entries[0, i] = -(lean * t)
      for j, s in enumerate(cone.unit[i - 1 :], start=i):
        entries[i, j] = (lean - where(cone.polar, 0.0, spread)) * (t * s) + (spread if i == j else 0.0)
    return entries

  def root(self, contact: Fields, residual: Sequence[Number]) -> list[list[Number]]:
    """Return columns c [dim] with sum c c^T = Hessian over D: one along the cone's side, others across it."""
    cone = _Zones(contact["ratio"], residual)
    lean, spread = cone.coefficients()
    root_lean, root_spread = sqrt(lean), sqrt(spread)
    columns = [[sqrt(cone.normal_stiffness()), *(-(root_lean * t) for t in cone.unit)]]
    across = where(cone.polar, 0.0, root_spread)
    for i, t in enumerate(cone.unit):
      column = [-(across * t * s) + (root_spread if i == j else 0.0) for j, s in enumerate(cone.unit)]
      columns.append([0.0, *column])
    return columns


Cone: TypeAlias = Pyramid | Elliptic  # the cost of a contact and its derivatives at the residuals [dim]


class _Zones:
  """The zone of the elliptic cone that the residuals lie in."""

  def __init__(self, ratio: Number, residual: Sequence[Number]) -> None:
    square = dot(residual[1:], residual[1:])
    self.length = sqrt(square)  # T
    self.per_length = 1.0 / maximum(self.length, SMALL)
    self.unit = [x * self.per_length for x in residual[1:]]
    self.acts = residual[0] < self.length
    self.polar = residual[0] + ratio * self.length <= 0.0
    self.slides = self.acts & negate(self.polar)
    self.stiffness = ratio / (1.0 + ratio)
    self.ratio, self.depth = ratio, residual[0] - self.length

  def normal_stiffness(self) -> Number:
    """Return the Hessian's entry (0, 0) over D."""
    return where(self.acts, where(self.polar, 1.0, self.stiffness), 0.0)

  def coefficients(self) -> tuple[Number, Number]:
    """Return l and s: the tangents' block is l t t^T + s (1 - t t^T), in the polar cone s; -l t couples."""
    lean = where(self.acts, where(self.polar, 0.0, self.stiffness), 0.0)
    spread = where(self.polar, self.ratio, -(self.stiffness * self.depth * self.per_length))
    return lean, where(self.acts, spread, 0.0)

  def cost(self, residual: Sequence[Number]) -> Number:
    """Return the cost over D."""
    springs = residual[0] * residual[0] + self.ratio * (self.length * self.length)
    return where(self.acts, 0.5 * where(self.polar, springs, self.stiffness * (self.depth * self.depth)), 0.0)

  def side_growth(self, there: _Zones, rate: Sequence[Number], step: Number) -> Growth:
    """Return the growth over D of stiffness / 2 (r0 - T)^2, along the cone's side, over a step to `there`."""
    along, along_there = dot(self.unit, rate[1:]), dot(there.unit, rate[1:])
    across = maximum(dot(rate[1:], rate[1:]) - along * along, 0.0)
    # Growth of T beyond its tangent: T^2 is quadratic in the step. Where the tangent has passed zero, the
    # direction of sliding reverses, and nothing is lost in the plain difference.
    tangent = self.length + step * along
    bend = where(
      tangent > 0.0,
      (step * step) * across / maximum(there.length + tangent, SMALL),
      there.length - tangent,
    )
    speed_there = rate[0] - along_there
    deeper = step * (rate[0] - along) - bend
    beyond = 0.5 * (deeper * deeper) - self.depth * bend
    rise = deeper * speed_there + self.depth * (along - along_there)
    return Growth(self.stiffness * beyond, self.stiffness * rise, 0.0)

  def slopes(self, residual: Sequence[Number], rate: Sequence[Number]) -> tuple[Number, Number]:
    """Return the cost's first and second derivative over D along a direction."""
    # the rate of T, and the squared rate of the tangents
    along, square = dot(self.unit, rate[1:]), dot(rate[1:], rate[1:])
    speed = rate[0] - along
    springs = residual[0] * rate[0] + self.ratio * dot(residual[1:], rate[1:])
    first = where(self.polar, springs, self.stiffness * self.depth * speed)
    bends = self.depth * (square - along * along) * self.per_length
    second = where(
      self.polar, rate[0] * rate[0] + self.ratio * square, self.stiffness * (speed * speed - bends)
    )
    return where(self.acts, first, 0.0), where(self.acts, second, 0.0)
