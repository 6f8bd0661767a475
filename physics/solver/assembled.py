"""The assembled Newton matrix but for couplings: M, the stiffness of contacts with the world, a diagonal."""

import functools
import operator
from collections.abc import Iterator, Mapping, Sequence

from physics.algebra.block_matrix import BlockMatrix
from physics.algebra.branch_matrix import BranchMatrix
from physics.algebra.sparse import SparseMatrix
from physics.algebra.spatial import Stiffness
from physics.dynamics.articulated import Stiffnesses
from physics.dynamics.bodies import bodies, dofs
from physics.dynamics.dynamics import ancestors, joint_space, sums_below
from physics.dynamics.kinematics import Poses, dofs_above
from physics.dynamics.tree_inertia import TreeInertia
from physics.model.model import Model
from physics.trace.each import Each, Place, indexed, mapped
from physics.trace.rows import rows
from physics.trace.trace import Mask, Number

WIDTH = 21  # components of a stiffness


def assemble(
  to: BlockMatrix,
  model: Model,
  p: Poses,
  M: SparseMatrix | TreeInertia,
  stiffness: Stiffnesses,
  diagonal: Sequence[Number],
) -> None:
  """Add M + S^T K S + the diagonal [nv]; `stiffness` K by welded body, about its tree origin."""
  if isinstance(M, SparseMatrix):
    to.add(with_stiffness(model, p, M, dict(stiffness.items()), diagonal).entries)
    return
  summed = rows(p.program, Stiffness, model.nbody, sums=True)
  for body in bodies(model, p.program):
    summed[body] = M.inertias[body].as_stiffness()
  for body, extra in stiffness.items():
    summed[body] = summed[body] + extra.moved(-p.reference[body])
  composite = sums_below(model, Stiffness, summed, p.reference)
  own = indexed(p.program, mapped(lambda a, b: a + b, M.diagonal, diagonal))
  to.touch((i, j) for i in range(model.nv) for j in (i, *ancestors(model, i)))
  for body in bodies(model, p.program):
    whole = dofs(model, body)
    for k, i in enumerate(whole):
      force = composite[body] @ p.near_cdof[i]
      for j in whole[:k]:
        to.add_entry(i, j, force.power(p.near_cdof[j]))
      to.add_entry(i, i, force.power(p.near_cdof[i]) + own[i])
      force = force.moved(p.reference[body])
      for j in _above(model, body):
        to.add_entry(i, j, force.power(p.cdof[j]))


def add_stiffness(
  to: BranchMatrix, model: Model, p: Poses, stiffness: Stiffnesses, lanes: Mapping[int, Mask]
) -> None:
  """Add S^T K S; `stiffness` K by welded body, about its tree origin, read where bodies have any.

  Limbs from which no lane has any stiffness down to the leaves cost nothing.
  """
  program, count = to.program, len(to.limbs)
  carried, touched = program.array(WIDTH * count), program.array(count, Mask)
  with program.loop(len(carried)) as place:
    carried[place] = 0.0

  def carry(limb: int, more: Stiffness) -> None:
    for k, value in enumerate(more.components, start=limb * WIDTH):
      carried[k] = carried[k] + value

  owners = [sorted({int(model.dof_bodyid[dof]) for dof in limb}) for limb in to.limbs]
  for limb, own in enumerate(owners):
    touched[limb] = functools.reduce(operator.or_, [lanes[body] for body in own if body in lanes], False)
  for limb, own in reversed([*enumerate(owners)]):
    with program.when_any(touched[limb]):
      for body in reversed(own):
        if body in lanes:
          with program.when_any(lanes[body]):
            carry(limb, stiffness[body])
        below = Stiffness.of(carried.read(limb * WIDTH, WIDTH))
        for i in dofs(model, body):
          force = below @ p.cdof[i]
          to.add({(i, j): force.power(p.cdof[j]) for j in (i, *ancestors(model, i))})
      for above in to.above[limb][:1]:
        touched[above] = touched[above] | touched[limb]
        carry(above, Stiffness.of(carried.read(limb * WIDTH, WIDTH)))


def _above(model: Model, body: Each) -> Iterator[Each]:
  """Yield the degrees of freedom that move a body's parent; in a loop, for as many as it has."""
  if not isinstance(body, Place):
    yield from dofs_above(model, int(model.body_parentid[body]))
    return
  found = [dofs_above(model, int(model.body_parentid[each])) for each in body.elements]
  if any(found):
    program, ends = body.program, [sum(map(len, found[: k + 1])) for k in range(len(found))]
    starts = [end - len(own) for end, own in zip(ends, found, strict=True)]
    start, end = (program.table(bound, body.turn) for bound in (starts, ends))
    with program.loop(end, start) as at:
      yield program.table([dof for own in found for dof in own], at)


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
