"""Newton's method for the constrained acceleration, with exact line search and warm start.

qacc minimises 1/2 (x - qacc_smooth)^T M (x - qacc_smooth) + sum of the constraints' costs. This is convex and
piecewise quadratic, so a full Newton step with the right active set ends the search (manual, chapter
Computation, section Solver algorithms). M x and the constraints' residuals are updated along with x: an
iteration applies M and the Jacobian once, to its step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, neg, sub

from physics.algebra.block_matrix import BlockMatrix
from physics.algebra.branch_matrix import BranchMatrix
from physics.algebra.sparse import SparseMatrix
from physics.algebra.spatial import Inertia
from physics.constraint.cone import NO_GROWTH, Growth, Line
from physics.constraint.contact import MovingContacts, WorldContacts
from physics.constraint.jacobian import outgrows
from physics.constraint.joint_rows import JointRows
from physics.dynamics.articulated import Stiffnesses, factor_articulated
from physics.dynamics.dynamics import ancestors, inert_tendons
from physics.dynamics.kinematics import Poses
from physics.dynamics.reference import has_light_links
from physics.dynamics.tree_inertia import TreeInertia
from physics.model.model import Model
from physics.smooth import Balance
from physics.solver.assembled import add_stiffness, assemble
from physics.solver.low_rank import LowRank
from physics.trace.each import inner, mapped, replace, weighted_square
from physics.trace.trace import Array, Mask, Number, Program, absolute, maximum, minimum, number, where

TOLERANCE = 2e-6  # gradient at which the search ends, relative to the forces in balance
STEP_TOLERANCE = 1e-6  # step that ends it, relative to qacc: float32 resolves no more
LINE_TOLERANCE = 0.3  # relative slope at which the line search ends; from 0.1 to 0.7 speeds are alike
LINE_ITERATIONS = 16  # the cost's kinks can lie at a thousandth of the step, and beside each other
LINE_MARGIN = 0.05  # the least share of the bracket that a trial step leaves out
WRITTEN = 40  # degrees of freedom up to which a matrix is factored in written-out code
SHORT = 12  # the same from root to leaf: entries are faster than articulated bodies (0.78 of the time with 8)
STALLED = 1e-3  # gradient, relative to the forces in balance, above which a search that ends has failed


@dataclass(frozen=True)
class Bodies:
  """The bodies of a Newton step: M without its matrix."""

  model: Model
  poses: Poses
  inertias: list[Inertia]  # by body that has joints, with those welded to it


@dataclass(frozen=True)
class Search:
  """Statistics of a search for the acceleration, per lane."""

  iterations: Array
  stalled: Array  # 1 where rounding left no step that lowers the cost, far from the solution; else 0


@dataclass(frozen=True)
class Problem:
  """The minimisation problem: inertia, applied joint forces, constraints (absent kinds are None)."""

  bodies: Bodies
  M: SparseMatrix | TreeInertia
  force: list[Number]  # [nv]
  joints: JointRows
  world: WorldContacts | None
  moving: MovingContacts | None
  unbalanced: Balance | None = None  # force - M qacc, where a product with M would lose digits of light links

  @property
  def contacts(self) -> list[WorldContacts | MovingContacts]:
    """The kinds of contact that exist."""
    return [contacts for contacts in (self.world, self.moving) if contacts]

  @property
  def constraints(self) -> list[JointRows | WorldContacts | MovingContacts]:
    """The kinds of constraint that exist."""
    return [self.joints, *self.contacts]

  def start(self, x: list[Number]) -> None:
    """Store all residuals at qacc = x [nv]."""
    for constraint in self.constraints:
      constraint.start(x)

  def aim(self, direction: list[Number], unsolved: Mask) -> Line:
    """Return the line from qacc along a direction [nv]."""
    lines = [constraint.aim(direction, unsolved) for constraint in self.constraints]

    def move(step: Number, unsolved: Mask) -> None:
      for line in lines:
        line.move(step, unsolved)

    def growth(step: Number, searching: Mask) -> Growth:
      return reduce(add, (line.growth(step, searching) for line in lines), NO_GROWTH)

    return Line(move, growth)

  def inertial(self, x: list[Number]) -> list[Number]:
    """Return M x [nv]; where `unbalanced` is given, M x - force."""
    return mapped(neg, self.unbalanced(x)) if self.unbalanced else self.M @ x

  def gradient(self, inertial: list[Number], unsolved: Mask) -> list[Number]:
    """Return M x - force - J^T f [nv] at the stored residuals."""
    gradient = inertial if self.unbalanced else mapped(sub, inertial, self.force)
    for constraint in self.constraints if self.joints.rows else self.contacts:
      gradient = mapped(sub, gradient, constraint.force(unsolved))
    return gradient

  def size(self, force: Sequence[Number]) -> Number:
    """Return the squared size of joint forces [nv], each divided by the inertia that it meets at qpos0."""
    return weighted_square(force, [number(w) for w in self.bodies.model.dof_invweight0])

  def newton_step(self, program: Program, gradient: list[Number], unsolved: Mask) -> list[Number]:
    """Return -H^-1 gradient [nv] at the stored residuals."""
    model, force = self.bodies.model, mapped(neg, gradient)
    if self.is_branched:
      return self._branched(program, unsolved).solve(force)
    diagonal = self.joints.diagonal()
    stiffness: Stiffnesses = {}
    if self.world:
      sums = self.world.stiffness(unsolved)
      stiffness = sums if program.repeats else dict(sums.items())
    if self.is_assembled:
      H = BlockMatrix(program, self.M.n)
      assemble(H, model, self.bodies.poses, self.M, stiffness, diagonal)
      self._push_hessian(H, unsolved)
      H.factor()
      return H.solve(force)
    diagonal = mapped(lambda a, d: number(a) + d, model.dof_armature, diagonal)
    factor = factor_articulated(model, self.bodies.poses, self.bodies.inertias, stiffness, diagonal)
    half = factor.half_solve(force)
    if self.rank:
      correction = LowRank(program, factor, half, self.rank)
      self._push_hessian(correction, unsolved)
      half = correction.corrected()
    return factor.finish_solve(half)

  @property
  def rank(self) -> int:
    """The most columns that couple degrees of freedom beyond the tree."""
    return self.joints.rank + (self.moving.rank if self.moving else 0)

  @property
  def is_assembled(self) -> bool:
    """Whether the Newton step assembles a matrix.

    It does if a correction could have more columns than half the degrees of freedom, or if M has more than
    bodies and joints.
    """
    return bool(inert_tendons(self.bodies.model)) or outgrows(self.rank, self.M.n)

  @property
  def is_branched(self) -> bool:
    """Whether the assembled matrix is written out, by the branches of the trees; else it is in blocks.

    It is written out too where nothing couples branches and these are short: bodies of a few degrees of
    freedom each take longer than their entries.
    """
    if not isinstance(self.M, SparseMatrix) or self.M.n > WRITTEN:
      return False
    if not self.is_assembled:
      return self.rank == 0 and _depth(self.bodies.model) <= SHORT and not has_light_links(self.bodies.model)
    return self.moving is None or not self.moving.is_pile

  def _branched(self, program: Program, unsolved: Mask) -> BranchMatrix:
    """Return the factored matrix of a Newton step over the branches of the trees."""
    model, diagonal = self.bodies.model, self.joints.diagonal()
    entries = self.M.add({(i, i): value for i, value in enumerate(diagonal)}).entries
    H = BranchMatrix(program, model.dof_parentid.tolist(), entries)
    if self.world:
      lanes = program.array(len(self.world.bodies), Mask)
      stiffness = self.world.stiffness(unsolved, lanes)
      touched = dict(zip(self.world.bodies, lanes.read(), strict=True))
      add_stiffness(H, model, self.bodies.poses, stiffness, touched)
    self._push_hessian(H, unsolved)
    H.factor()
    return H

  def _push_hessian(self, to: LowRank | BlockMatrix | BranchMatrix, unsolved: Mask) -> None:
    self.joints.push_hessian(to)
    if self.moving:
      self.moving.push_hessian(to, unsolved)


def _depth(model: Model) -> int:
  """Return the most degrees of freedom from a root to a leaf."""
  return max(1 + len([*ancestors(model, dof)]) for dof in range(model.nv))


def solve(
  program: Program, problem: Problem, x: Array, iterations: int, other_start: list[Number] | None = None
) -> Search:
  """Improve qacc [nv] in `x` until the gradient vanishes (MuJoCo's `mj_fwdConstraint`).

  The search begins at `x`, or at `other_start` where that costs less. A lane that is solved does not change
  while its neighbours go on: its result does not depend on them.
  """
  inertial = program.array(problem.M.n)  # `Problem.inertial`
  inertial.fill(problem.inertial(x.values()))
  unsolved = program.variable(True, Mask)
  count, stalled = program.variable(0.0), program.variable(0.0)
  problem.start(x.values())
  if other_start:
    _start_lower(problem, x, inertial, other_start, unsolved[0])
  with program.loop(iterations):
    gradient = problem.gradient(inertial.values(), unsolved[0])
    scale = problem.size(inertial.values()) + problem.size(problem.force)
    remaining = problem.size(gradient)
    unsolved[0] = unsolved[0] & (remaining > TOLERANCE**2 * scale)
    active = unsolved[0]
    program.break_if_none(active)
    count[0] = count[0] + where(active, 1.0, 0.0)
    direction = problem.newton_step(program, gradient, active)
    # Where rounding has made a pivot of the Hessian negative, that soft direction has the wrong sign.
    slope = inner(gradient, direction)
    direction = mapped(lambda d: where(slope > 0.0, -d, d), direction)
    line = problem.aim(direction, active)
    change = problem.M @ direction
    step = _line_search(program, line, -absolute(slope), inner(change, direction), active)
    line.move(step, active)
    stalled[0] = where(active & (step <= 0.0) & (remaining > STALLED**2 * scale), 1.0, stalled[0])
    change_of_x, size = inner(direction, direction), inner(x.values(), x.values())
    unsolved[0] = active & (step > 0.0) & (change_of_x > STEP_TOLERANCE**2 * size)
    for values, rates in ((x, direction), (inertial, change)):
      replace(values, lambda a, d: where(active, a + step * d, a), values.values(), rates)
    if problem.unbalanced:
      inertial.fill(problem.inertial(x.values()))
  return Search(count, stalled)


def _start_lower(problem: Problem, x: Array, inertial: Array, other: list[Number], lanes: Mask) -> None:
  """Move `x` [nv] and `inertial` to another start where that costs less (MuJoCo's `warmstart`)."""
  direction = mapped(lambda a, b: b - a, x.values(), other)
  change, gradient = problem.M @ direction, problem.gradient(inertial.values(), lanes)
  line = problem.aim(direction, lanes)
  rise = inner(gradient, direction) + 0.5 * inner(change, direction) + line.growth(1.0, lanes).beyond_tangent
  replace(x, lambda a, b: where(rise < 0.0, b, a), x.values(), other)
  inertial.fill(problem.inertial(x.values()))
  # Residuals moved from a distant start would retain its rounding.
  problem.start(x.values())


def _line_search(program: Program, line: Line, slope: Number, curvature: Number, unsolved: Mask) -> Number:
  """Return a step along a line that lowers the cost, near its minimum; 0 if none was found.

  It is Newton's method within a bracket. Where a Newton step leaves the bracket, as beyond a kink, or nearly
  reaches its other end, and so would oscillate, the next trial step is the zero of the chord of the slopes at
  the ends. The Illinois rule halves the slope of an end that stays (Dowell and Jarratt 1971). `slope` is the
  cost's slope at step 0, `curvature` the curvature of its smooth part. The cost at a step is compared with
  the cost at 0 by its growth beyond the tangent: a sum of positive terms. The difference of two costs would
  be lost in the rounding of their springs' energy.
  """
  best, lowest, searching = program.variable(0.0), program.variable(0.0), program.variable(unsolved, Mask)
  step, low, high = program.variable(1.0), program.variable(0.0), program.variable(1e6)
  slope_low, slope_high = program.variable(slope), program.variable(1.0)
  side = program.variable(0.0)  # the end that moved last: -1 low, 1 high
  with program.loop(LINE_ITERATIONS):
    at = step[0]
    growth = line.growth(at, searching[0])
    change = at * (slope + 0.5 * at * curvature) + growth.beyond_tangent
    first, second = slope + at * curvature + growth.slope, curvature + growth.curvature
    lowers = searching[0] & (change < lowest[0])
    best[0], lowest[0] = where(lowers, at, best[0]), where(lowers, change, lowest[0])
    searching[0] = searching[0] & ~(lowers & (absolute(first) <= LINE_TOLERANCE * absolute(slope)))
    program.break_if_none(searching[0])
    falls = first < 0.0
    low[0], high[0] = where(falls, at, low[0]), where(falls, high[0], at)
    slope_low[0] = where(falls, first, where(side[0] > 0.0, 0.5, 1.0) * slope_low[0])
    slope_high[0] = where(falls, where(side[0] < 0.0, 0.5, 1.0) * slope_high[0], first)
    side[0] = where(falls, -1.0, 1.0)
    newton, width = at - first / maximum(second, 1e-30), high[0] - low[0]
    chord = -slope_low[0] / maximum(slope_high[0] - slope_low[0], 1e-30)
    chord = low[0] + width * minimum(maximum(chord, LINE_MARGIN), 1.0 - LINE_MARGIN)
    gap = where(falls, high[0] - newton, newton - low[0])  # to the end that Newton's step goes towards
    step[0] = where(searching[0], where((gap > LINE_MARGIN * width) & (gap < width), newton, chord), at)
  return where(unsolved, best[0], 0.0)
