"""Inertia of a long model: a matrix-free operator on joint rates."""

from collections.abc import Mapping

from physics.algebra.sparse import At, SparseMatrix
from physics.algebra.spatial import NO_FORCE, Force, Inertia
from physics.dynamics.articulated import ArticulatedFactor, factor_articulated, welded_inertias
from physics.dynamics.bodies import bodies
from physics.dynamics.dynamics import ancestors, composite_inertias, joint_space, project
from physics.dynamics.kinematics import Poses, propagate
from physics.model.model import Model
from physics.trace.each import mapped
from physics.trace.rows import rows
from physics.trace.trace import Number, is_zero


class TreeInertia:
  """S^T I S plus a diagonal [nv, nv], for inertias I [nbody] about their references.

  The work of a product, or of the factorisation, is proportional to the number of bodies.
  """

  def __init__(self, model: Model, p: Poses, inertias: list[Inertia], diagonal: list[Number]) -> None:
    self.model, self.p, self.inertias, self.diagonal = model, p, inertias, diagonal
    self.n = model.nv

  def __matmul__(self, x: list[Number]) -> list[Number]:
    motion, program = propagate(self.model, self.p, x), self.p.program
    forces = rows(program, Force, self.model.nbody)
    forces[0] = NO_FORCE
    for body in bodies(self.model, program):
      forces[body] = self.inertias[body] @ motion[body].about(self.p.reference[body])
    carried = project(self.model, self.p, forces, near=True)
    if all(is_zero(own) for own in self.diagonal):
      return carried
    return mapped(lambda force, own, rate: force + own * rate, carried, self.diagonal, x)

  def __contains__(self, at: At) -> bool:
    return at[0] == at[1] or at[1] in ancestors(self.model, at[0])

  def __getitem__(self, at: At) -> Number:
    return self.entries[at]

  def add(self, values: Mapping[At, Number]) -> "TreeInertia | SparseMatrix":
    """Return the sum with a matrix, given by its entries; a matrix unless they are on the diagonal."""
    if any(i != j for i, j in values):
      return SparseMatrix(self.n, self.entries).add(values)
    diagonal = [own + values.get((i, i), 0.0) for i, own in enumerate(self.diagonal)]
    return TreeInertia(self.model, self.p, self.inertias, diagonal)

  def factor(self) -> ArticulatedFactor:
    """Return the factors."""
    return factor_articulated(self.model, self.p, self.welded, {}, self.diagonal)

  @property
  def welded(self) -> list[Inertia]:
    """The inertias of the bodies that have joints."""
    return welded_inertias(self.model, self.inertias)

  @property
  def entries(self) -> dict[At, Number]:
    """The entries (i, j), j <= i, that do not vanish, written out one by one."""
    program = self.p.program
    return program.once((self, "entries"), self._entries) if program else self._entries()

  def _entries(self) -> dict[At, Number]:
    composite = composite_inertias(self.model, self.p, self.inertias)
    M = joint_space(self.model, composite, self.p.near_cdof, self.p.reference)
    return M.add({(i, i): own for i, own in enumerate(self.diagonal)}).entries
