"""Suppression of slip after the solver: friction forces as if friction were not soft.

Source: MuJoCo's manual, chapter Computation, section Solver algorithms, NoSlip. The normal forces stay as the
solver found them. Each joint with friction loss, and each contact in turn, gets the friction force that holds
it, as far as the normal force allows. A sweep over all is repeated `noslip_iterations` times, or until it
gains less than `noslip_tolerance`. MuJoCo takes contacts in another order. Where they are redundant, as under
a box, or where the sweeps end early, the forces depend on it.
"""

import math

from physics.algebra.block_matrix import factored
from physics.algebra.spatial import MINVAL, dot, total
from physics.constraint.cone import Friction
from physics.constraint.contact import MovingContacts, WorldContacts
from physics.constraint.contact_rows import row_scales
from physics.solver.newton import Problem
from physics.trace.trace import Array, Mask, Number, Program, clip, maximum, number, where


def suppress_slip(program: Program, problem: Problem, x: Array) -> None:
  """Change qacc [nv] in `x` and the forces of friction (MuJoCo's `mj_solNoSlip`)."""
  model = problem.bodies.model
  sweep = _Sweep(program, problem, x)
  least = model.noslip_tolerance * total([problem.M[i, i] for i in range(model.nv)])
  with program.loop(model.noslip_iterations):
    sweep.unsolved[0] = sweep.unsolved[0] & (sweep.gain[0] >= least)
    program.break_if_none(sweep.unsolved[0])
    sweep.gain[0] = 0.0
    sweep.hold_joints()
    for contacts in problem.contacts:
      if contacts.cone.dim > 1:
        sweep.hold_contacts(contacts)


class _Sweep:
  """One sweep over all friction, with the forces and accelerations that it changes."""

  def __init__(self, program: Program, problem: Problem, x: Array) -> None:
    self.program, self.x, self.factor = program, x, factored(program, problem.M)
    self.joints = problem.joints
    self.unsolved, self.gain = program.variable(True, Mask), program.variable(math.inf)
    forces = [constraint.force(self.unsolved[0]) for constraint in problem.constraints]
    x.fill(self.factor.solve([total(each) for each in zip(problem.force, *forces, strict=True)]))
    frictions = [i for i, row in enumerate(self.joints.rows) if row.is_friction]
    self.joints.held = {i: program.variable(self.joints.row_force(i)) for i in frictions}
    for contacts in problem.contacts:
      contacts.keep_forces()

  def hold_joints(self) -> None:
    """Hold every joint and tendon with friction loss."""
    for index, force in self.joints.held.items():
      row = self.joints.rows[index]
      answer = self.factor.solve([number(row.jacobian.get(dof, 0.0)) for dof in range(self.x.size)])
      response, residual = row.along(answer), row.along(self.x.read()) + row.bias
      new = clip(force[0] - residual / maximum(response, MINVAL), row.low, row.high)
      (change,) = self._move([new - force[0]], [answer], Friction([[response]], [residual]))
      force[0] = force[0] + change

  def hold_contacts(self, contacts: WorldContacts | MovingContacts) -> None:
    """Hold every contact."""
    frictions = range(1, contacts.cone.dim)
    with contacts.acting(self.unsolved[0]) as entry:
      answers = [self.factor.solve(contacts.column(entry, k)) for k in frictions]
      columns = [contacts.along(answer)(entry)[1:] for answer in answers]
      along = contacts.along(self.x.read())(entry)
      block = Friction(
        [list(row) for row in zip(*columns, strict=True)],
        [along[k] + entry[f"bias{k}"] for k in frictions],
        row_scales(entry, contacts.cone.dim),
      )
      old, grip = [entry[f"force{k}"] for k in frictions], [entry[f"grip{k}"] for k in frictions]
      new = contacts.cone.stick(self.program, block, old, grip)
      changes = self._move([a - b for a, b in zip(new, old, strict=True)], answers, block)
      for k, force, change in zip(frictions, old, changes, strict=True):
        entry[f"force{k}"] = force + change

  def _move(self, changes: list[Number], answers: list[list[Number]], block: Friction) -> list[Number]:
    """Move qacc by changes [n] of forces, in unsolved lanes; return the changes there.

    `answers` [n, nv] are the changes of qacc per force.
    """
    changes = [where(self.unsolved[0], change, 0.0) for change in changes]
    moved = [dot(changes, each) for each in zip(*answers, strict=True)]
    self.x.fill([a + b for a, b in zip(self.x.read(), moved, strict=True)])
    self.gain[0] = self.gain[0] - block.rise(changes)
    return changes
