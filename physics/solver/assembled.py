"""Assembled solves with M plus all stiffness, where many contacts couple few degrees of freedom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from physics.algebra.sparse import At, SparseFactor, SparseMatrix
from physics.algebra.spatial import Stiffness, dot
from physics.dynamics.dynamics import joint_space
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.trace.trace import Array, Number, Program

MOST_DOFS = 48  # the factorisation is unrolled: n^3 / 6 products


class Couplings:
  """A matrix V V^T [nv, nv] in group memory, columns of V pushed while the program runs."""

  def __init__(self, program: Program, pairs: set[At]) -> None:
    self.program = program
    self.indices = {at: index for index, at in enumerate(sorted(pairs))}
    self.sums: Array = program.array(len(self.indices))
    self.sums.fill([0.0] * len(self.sums))

  def push(self, columns: Sequence[Mapping[int, Number]]) -> None:
    """Add columns of V [nv], given by degree of freedom; all have the same ones."""
    dofs = sorted(columns[0])
    for i in dofs:
      for j in (j for j in dofs if j <= i):
        index = self.indices[i, j]
        added = dot([column[i] for column in columns], [column[j] for column in columns])
        self.sums[index] = self.sums[index] + added

  def entries(self) -> dict[At, Number]:
    """Return the sums by entry."""
    return {at: self.sums[index] for at, index in self.indices.items()}


def pairs_among(dofs: Sequence[int]) -> set[At]:
  """Return the entries that a column on these degrees of freedom reaches."""
  return {(i, j) for i in dofs for j in dofs if j <= i}


def factor_assembled(
  model: Model,
  p: Poses,
  M: SparseMatrix,
  stiffness: Mapping[int, Stiffness],
  others: Sequence[Mapping[At, Number]],
) -> SparseFactor:
  """Factor M + S^T K S + the others [nv, nv]; `stiffness` K by welded body, about its tree origin."""
  composite: list[Stiffness | None] = [stiffness.get(body) for body in range(model.nbody)]
  for body in reversed(range(1, model.nbody)):
    parent, own = int(model.body_parentid[body]), composite[body]
    if own is not None and model.body_treeid[parent] >= 0:
      above = composite[parent]
      composite[parent] = own if above is None else above + own
  H = M.add(joint_space(model, composite, p.cdof).entries)
  for other in others:
    H = H.add(other)
  return H.factor()
