"""Newton's method for the constrained acceleration, with exact line search and warm start.

qacc minimises 1/2 (x - qacc_smooth)^T M (x - qacc_smooth) + sum of the constraints' costs: convex and piecewise quadratic, so that a full
Newton step with the right active set ends the search (manual, chapter Computation, section Solver algorithms). The line search
therefore runs only where the full step overshoots; it sits before the factorisation, so that none is wasted.
"""

from __future__ import annotations

from dataclasses import dataclass

from physics.constraint import JointRows
from physics.contact import MovingContacts, WorldContacts
from physics.dynamics import TreeMatrix
from physics.spatial import dot
from physics.trace import Array, Mask, Number, Program, absolute, maximum, where

OVERSHOOT = 0.3  # slope at the full step, relative to the one at its start, from which the line is searched
LINE_TOLERANCE = 0.01  # slope at which the line search ends, likewise
LINE_ITERATIONS = 8
TOLERANCE = 3e-5  # gradient at which the solver ends, relative to the forces in balance: float32 resolves no more


@dataclass(frozen=True)
class Problem:
  """What is minimised: inertia, applied joint forces, constraints (absent kinds are None)."""

  M: TreeMatrix
  force: list[Number]
  joints: JointRows
  world: WorldContacts | None
  moving: MovingContacts | None

  def constraint_force(self, x: list[Number], unsolved: Mask) -> list[Number]:
    """Note all residuals at qacc = x and return J^T f [nv]."""
    force = self.joints.evaluate(x)
    for contacts in self._contacts():
      force = [a + b for a, b in zip(force, contacts.evaluate(x, unsolved), strict=True)]
    return force

  def aim(self, direction: list[Number]) -> None:
    """Note the rates of all residuals along a direction."""
    self.joints.aim(direction)
    for contacts in self._contacts():
      contacts.aim(direction)

  def slopes(self, step: Number) -> tuple[Number, Number]:
    """Return first and second derivative of the constraints' cost along the direction, a step from the noted residuals."""
    first, second = self.joints.slopes(step)
    for contacts in self._contacts():
      more = contacts.slopes(step)
      first, second = first + more[0], second + more[1]
    return first, second

  def newton_step(self, gradient: list[Number], unsolved: Mask) -> list[Number]:
    """Return -H^-1 gradient at the noted residuals."""
    H = self.M.copy()
    self.joints.add_hessian(H.entries)
    if self.world:
      self.world.add_hessian(H.entries, unsolved)
    factor = H.factor()
    half = factor.half_solve([-g for g in gradient])
    if self.moving:
      half = self.moving.correct(factor, half, unsolved)
    return factor.finish_solve(half)

  def _contacts(self) -> list[WorldContacts | MovingContacts]:
    return [contacts for contacts in (self.world, self.moving) if contacts]


@dataclass(frozen=True)
class Search:
  """The state of the search, in group memory."""

  x: Array
  direction: Array
  gradient: Array
  slope: Array  # of the cost along the direction at its start; zero: no step to judge
  unsolved: Array
  iterations: Array


def solve(program: Program, problem: Problem, start: Array, iterations: int) -> Array:
  """Improve qacc [nv] in `start` until the gradient vanishes; return the number of iterations per lane."""
  nv = problem.M.n
  search = Search(
    start,
    program.array(nv),
    program.array(nv),
    program.variable(0.0),
    program.variable(True, Mask),
    program.variable(0.0),
  )
  search.direction.fill([0.0] * nv)
  with program.loop(iterations):
    with program.loop(2):
      overshoot = _judge(search, problem)
      program.break_if_none(overshoot)
      _search_line(program, search, problem, overshoot)
    unsolved = search.unsolved[0]
    program.break_if_none(unsolved)
    search.iterations[0] = search.iterations[0] + where(unsolved, 1.0, 0.0)
    gradient = search.gradient.read()
    step = [where(unsolved, dx, 0.0) for dx in problem.newton_step(gradient, unsolved)]
    search.slope[0] = dot(gradient, step)
    search.direction.fill(step)
    search.x.fill([x + dx for x, dx in zip(search.x.read(), step, strict=True)])
  return search.iterations


def _judge(search: Search, problem: Problem) -> Mask:
  """Evaluate the gradient, retire solved lanes and return where the last step overshot."""
  x, unsolved = search.x.read(), search.unsolved[0]
  inertial = problem.M @ x
  constraint = problem.constraint_force(x, unsolved)
  gradient = [a - f - c for a, f, c in zip(inertial, problem.force, constraint, strict=True)]
  scale = dot(inertial, inertial) + dot(problem.force, problem.force)
  left = unsolved & (dot(gradient, gradient) > TOLERANCE**2 * scale)
  search.gradient.fill(gradient)
  search.unsolved[0] = left
  slope = dot(gradient, search.direction.read())
  return left & (slope > -OVERSHOOT * search.slope[0]) & (search.slope[0] < 0.0)


def _search_line(program: Program, search: Search, problem: Problem, overshoot: Mask) -> None:
  """Move x to the minimum along the last step, in the lanes that overshot: Newton's method within a bracket."""
  x, direction = search.x.read(), search.direction.read()
  quadratic = dot(problem.M @ direction, direction)
  linear = dot([a - f for a, f in zip(problem.M @ x, problem.force, strict=True)], direction)
  problem.aim(direction)
  low, high, step = program.variable(0.0), program.variable(1.0), program.variable(1.0)
  with program.loop(LINE_ITERATIONS):
    back = step[0] - 1.0
    first, second = problem.slopes(back)
    first, second = first + linear + back * quadratic, second + quadratic
    program.break_if_none(overshoot & (absolute(first) > -LINE_TOLERANCE * search.slope[0]))
    low[0], high[0] = where(first < 0.0, step[0], low[0]), where(first < 0.0, high[0], step[0])
    newton = step[0] - first / maximum(second, 1e-30)
    inside = (newton > low[0]) & (newton < high[0])
    step[0] = where(inside, newton, 0.5 * (low[0] + high[0]))
  move = where(overshoot, step[0] - 1.0, 0.0)
  search.x.fill([a + move * d for a, d in zip(x, direction, strict=True)])
  search.slope[0] = where(overshoot, 0.0, search.slope[0])
