"""Articulated-body solves with M plus stiffness on bodies and joints: no matrix over joints is formed.

A body's inertia I and the stiffness K of its contacts with the world both multiply its acceleration. So
(S^T (I + K) S + diagonal) x = b is the forward dynamics of a tree with inertias I + K (Featherstone 2008,
chapter 7). Joints are taken one degree of freedom at a time. All quantities of a body are about its
reference, and are moved to the reference of the body that carries it: where both are the tree's origin, as
without light links, nothing is transformed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from physics.algebra.spatial import NO_FORCE, STILL, Force, Inertia, Motion, Stiffness
from physics.dynamics.bodies import bodies, dofs, leaves_first
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.trace.each import Each, alike, follow, indexed, numbers, repeating, stored
from physics.trace.rows import filled, rows
from physics.trace.trace import Number


class Stiffnesses(Protocol):
  """Stiffness by welded body."""

  def items(self) -> Iterable[tuple[Each, Stiffness]]:
    """Return each body with its stiffness, once."""

  def __getitem__(self, body: int, /) -> Stiffness:
    """Return the stiffness of a body that may have some."""


@dataclass(frozen=True)
class ArticulatedFactor:
  """The factors H = L^T D L as operators: for every dof 1 / D and the force G that its motion spreads."""

  model: Model
  p: Poses
  inverse: list[Number]  # [nv] 1 / D
  spread: list[Force]  # [nv] G = (I + K)_articulated S / D

  def half_solve(self, b: Sequence[Number]) -> list[Number]:
    """Return L^-T b [nv], from the leaves to the root."""
    model, p, program = self.model, self.p, self.p.program
    b, u = stored(program, b), numbers(program, model.nv)
    carried = filled(program, NO_FORCE, model.nbody)
    for body in _jointed(model, leaves_first(model, program)):
      load = carried[body]
      for dof in reversed(dofs(model, body)):
        u[dof] = b[dof] - load.power(p.near_cdof[dof])
        load = load + self.spread[dof] * u[dof]
      parent = _moving_parent(model, body)
      carried[parent] = carried[parent] + load.moved(p.reference[body] - p.reference[parent])
    return u

  def finish_solve(self, u: Sequence[Number]) -> list[Number]:
    """Return L^-1 D^-1 u [nv], from the root to the leaves: the rest of the solution after `half_solve`."""
    model, p, program = self.model, self.p, self.p.program
    u, x, motions = stored(program, u), numbers(program, model.nv), rows(program, Motion, model.nbody)
    motions[0] = STILL
    for body in _jointed(model, bodies(model, program)):
      parent = _moving_parent(model, body)
      motion = motions[parent].about(p.reference[body] - p.reference[parent])
      for dof in dofs(model, body):
        x[dof] = u[dof] * self.inverse[dof] - self.spread[dof].power(motion)
        motion = motion + p.near_cdof[dof] * x[dof]
      motions[body] = motion
    return x

  def solve(self, b: Sequence[Number]) -> list[Number]:
    """Return H^-1 b [nv]."""
    return self.finish_solve(self.half_solve(b))


def welded_inertias(model: Model, inertias: list[Inertia]) -> list[Inertia]:
  """Return the inertia of each body with joints, the bodies welded to it included.

  They share its reference.
  """
  program = repeating(inertias)
  if program and ((model.body_dofnum > 0) == (model.body_treeid >= 0)).all():
    return inertias  # none is welded to another
  merged = rows(program, Inertia, model.nbody, sums=True)
  for body in bodies(model, program):
    weld = follow(model.body_weldid, body)
    if alike(model.body_dofnum, body):
      merged[weld] = inertias[body]
    elif alike(model.body_treeid, body) >= 0:
      merged[weld] = merged[weld] + inertias[body]
  return merged


def factor_articulated(
  model: Model,
  p: Poses,
  inertias: list[Inertia],
  stiffness: Stiffnesses,
  diagonal: Sequence[Number],
) -> ArticulatedFactor:
  """Factor S^T (I + K) S + diagonal; `inertias` and `stiffness` by welded body, `diagonal` [nv].

  Inertias are about the bodies' references, stiffness about the trees' origins.
  """
  program = p.program
  articulated = rows(program, Stiffness, model.nbody, sums=True)
  for body in _jointed(model, bodies(model, program)):
    articulated[body] = inertias[body].as_stiffness()
  for body, extra in stiffness.items():
    articulated[body] = articulated[body] + extra.moved(-p.reference[body])
  inverse, spread = numbers(program, model.nv), rows(program, Force, model.nv)
  diagonal = indexed(program, diagonal)
  for body in _jointed(model, leaves_first(model, program)):
    rest = articulated[body]
    for dof in reversed(dofs(model, body)):
      force = rest @ p.near_cdof[dof]
      inverse[dof] = 1.0 / (force.power(p.near_cdof[dof]) + diagonal[dof])
      spread[dof] = force * inverse[dof]
      rest = rest - Stiffness.outer(force, spread[dof])
    parent = _moving_parent(model, body)
    if alike(model.body_treeid, parent) >= 0:
      articulated[parent] = articulated[parent] + rest.moved(p.reference[body] - p.reference[parent])
  return ArticulatedFactor(model, p, inverse, spread)


def _jointed(model: Model, found: Iterator[Each]) -> Iterator[Each]:
  """Yield the bodies of `found` that have joints."""
  return (body for body in found if alike(model.body_dofnum, body))


def _moving_parent(model: Model, body: Each) -> Each:
  """Return the body with joints, or the world, that a body's first joint moves against."""
  return follow(model.body_weldid, follow(model.body_parentid, body))
