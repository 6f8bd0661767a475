"""The assembled Newton matrix but for couplings: M, the stiffness of contacts with the world, a diagonal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from physics.algebra.sparse import SparseMatrix
from physics.algebra.spatial import Stiffness
from physics.dynamics.dynamics import joint_space
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.trace.trace import Number


def with_stiffness(
  model: Model, p: Poses, M: SparseMatrix, stiffness: Mapping[int, Stiffness], diagonal: Sequence[Number]
) -> SparseMatrix:
  """Return M + S^T K S + the diagonal [nv]; `stiffness` K by welded body, about its tree origin."""
  composite: list[Stiffness | None] = [stiffness.get(body) for body in range(model.nbody)]
  for body in reversed(range(1, model.nbody)):
    parent, own = int(model.body_parentid[body]), composite[body]
    if own is not None and model.body_treeid[parent] >= 0:
      above = composite[parent]
      composite[parent] = own if above is None else above + own
  H = M.add(joint_space(model, composite, p.cdof).entries)
  return H.add({(i, i): value for i, value in enumerate(diagonal)})
