"""Articulated-body solves with M plus stiffness on bodies and joints: no matrix over joints is formed.

A body's inertia I and the stiffness K of its contacts with the world both multiply its acceleration. So
(S^T (I + K) S + diagonal) x = b is the forward dynamics of a tree with inertias I + K (Featherstone 2008,
chapter 7). Joints are taken one degree of freedom at a time. All quantities share the tree's origin, so
nothing is transformed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from physics.algebra.spatial import NO_FORCE, STILL, Force, Inertia, Motion, Stiffness
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.trace.trace import Number


@dataclass(frozen=True)
class ArticulatedFactor:
  """The factors H = L^T D L as operators: for every dof 1 / D and the force G that its motion spreads."""

  model: Model
  cdof: list[Motion]  # [nv]
  inverse: list[Number]  # [nv] 1 / D
  spread: list[Force]  # [nv] G = (I + K)_articulated S / D

  def half_solve(self, b: Sequence[Number]) -> list[Number]:
    """Return L^-T b [nv], from the leaves to the root."""
    carried, u = [NO_FORCE] * self.model.nbody, list(b)
    for body in _leaves_first(self.model):
      for dof in reversed(_dofs(self.model, body)):
        u[dof] = b[dof] - carried[body].power(self.cdof[dof])
        carried[body] = carried[body] + self.spread[dof] * u[dof]
      parent = _moving_parent(self.model, body)
      carried[parent] = carried[parent] + carried[body]
    return u

  def finish_solve(self, u: Sequence[Number]) -> list[Number]:
    """Return L^-1 D^-1 u [nv], from the root to the leaves: the rest of the solution after `half_solve`."""
    motion, x = [STILL] * self.model.nbody, list(u)
    for body in reversed(_leaves_first(self.model)):
      motion[body] = motion[_moving_parent(self.model, body)]
      for dof in _dofs(self.model, body):
        x[dof] = u[dof] * self.inverse[dof] - self.spread[dof].power(motion[body])
        motion[body] = motion[body] + self.cdof[dof] * x[dof]
    return x


def welded_inertias(model: Model, inertias: list[Inertia]) -> dict[int, Inertia]:
  """Return the inertia of every body that has joints, with those of the bodies welded to it."""
  merged: dict[int, Inertia] = {}
  for body in range(1, model.nbody):
    weld = int(model.body_weldid[body])
    if weld > 0:
      merged[weld] = merged[weld] + inertias[body] if weld in merged else inertias[body]
  return merged


def factor_articulated(
  model: Model,
  p: Poses,
  inertias: dict[int, Inertia],
  stiffness: dict[int, Stiffness],
  diagonal: Sequence[Number],
) -> ArticulatedFactor:
  """Factor S^T (I + K) S + diagonal; `inertias` and `stiffness` by welded body, `diagonal` [nv]."""
  articulated = {body: inertia.as_stiffness() for body, inertia in inertias.items()}
  for body, extra in stiffness.items():
    articulated[body] = articulated[body] + extra
  inverse: list[Number] = [0.0] * model.nv
  spread = [NO_FORCE] * model.nv
  for body in _leaves_first(model):
    rest = articulated[body]
    for dof in reversed(_dofs(model, body)):
      force = rest @ p.cdof[dof]
      inverse[dof] = 1.0 / (force.power(p.cdof[dof]) + diagonal[dof])
      spread[dof] = force * inverse[dof]
      rest = rest - Stiffness.outer(force, spread[dof])
    parent = _moving_parent(model, body)
    if parent > 0:
      articulated[parent] = articulated[parent] + rest
  return ArticulatedFactor(model, p.cdof, inverse, spread)


def _leaves_first(model: Model) -> list[int]:
  return [body for body in reversed(range(1, model.nbody)) if model.body_dofnum[body]]


def _dofs(model: Model, body: int) -> range:
  first = int(model.body_dofadr[body])
  return range(first, first + int(model.body_dofnum[body]))


def _moving_parent(model: Model, body: int) -> int:
  """Return the body with joints, or the world, that a body's first joint moves against."""
  return int(model.body_weldid[model.body_parentid[body]])
