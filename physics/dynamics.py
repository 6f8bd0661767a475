"""The equations of motion M qacc + bias = force: composite bodies, Newton-Euler, tree factorisation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from physics.kinematics import Poses
from physics.model import Model
from physics.spatial import (
  NO_FORCE,
  Force,
  Inertia,
  Matrix,
  Motion,
  Quaternion,
  Vector,
  constant,
  cross_force,
  vector,
)
from physics.trace import Number, number


class TreeMatrix:
  """A symmetric matrix with the sparsity of M: entry (i, j) exists where dof j is i or an ancestor of i."""

  def __init__(self, model: Model, entries: dict[tuple[int, int], Number] | None = None) -> None:
    self.model, self.n = model, model.nv
    self.entries = entries if entries is not None else {}

  def ancestors(self, i: int) -> Iterator[int]:
    """Yield the dofs above dof i, nearest first."""
    while (i := int(self.model.dof_parentid[i])) >= 0:
      yield i

  def __getitem__(self, at: tuple[int, int]) -> Number:
    return self.entries[at]

  def __setitem__(self, at: tuple[int, int], value: Number) -> None:
    self.entries[at] = value

  def copy(self) -> TreeMatrix:
    """Return a matrix of its own with the same entries."""
    return TreeMatrix(self.model, dict(self.entries))

  def add(self, values: Mapping[tuple[int, int], Number]) -> TreeMatrix:
    """Return the matrix plus a symmetric one of entries (i, j), i >= j; those off the tree are left out."""
    result = self.copy()
    for at, value in values.items():
      if at in result.entries:
        result[at] = result[at] + value
    return result

  def __matmul__(self, x: Sequence[Number]) -> list[Number]:
    y = [self[i, i] * x[i] for i in range(self.n)]
    for i in range(self.n):
      for j in self.ancestors(i):
        y[i] = y[i] + self[i, j] * x[j]
        y[j] = y[j] + self[i, j] * x[i]
    return y

  def factor(self) -> TreeFactor:
    """Return M = L^T D L; L has the sparsity of M, without fill-in (Featherstone 2008, section 6.5)."""
    L = self.copy()
    inverse: list[Number] = [0.0] * self.n
    for k in reversed(range(self.n)):
      inverse[k] = 1.0 / L[k, k]
      for i in self.ancestors(k):
        factor = L[k, i] * inverse[k]
        L[i, i] = L[i, i] - factor * L[k, i]
        for j in self.ancestors(i):
          L[i, j] = L[i, j] - factor * L[k, j]
        L[k, i] = factor
    return TreeFactor(L, inverse)


class TreeFactor:
  """The factors L (unit diagonal) and 1 / D of a tree matrix."""

  def __init__(self, L: TreeMatrix, inverse: list[Number]) -> None:
    self.L, self.inverse = L, inverse

  def half_solve(self, x: Sequence[Number]) -> list[Number]:
    """Return L^-T x."""
    x = list(x)
    for i in reversed(range(self.L.n)):
      for j in self.L.ancestors(i):
        x[j] = x[j] - self.L[i, j] * x[i]
    return x

  def finish_solve(self, x: Sequence[Number]) -> list[Number]:
    """Return L^-1 D^-1 x: what is left of the solution after `half_solve`."""
    x = [value * inverse for value, inverse in zip(x, self.inverse, strict=True)]
    for i in range(self.L.n):
      for j in self.L.ancestors(i):
        x[i] = x[i] - self.L[i, j] * x[j]
    return x

  def solve(self, x: Sequence[Number]) -> list[Number]:
    """Return M^-1 x."""
    return self.finish_solve(self.half_solve(x))


def body_inertias(model: Model, p: Poses) -> list[Inertia]:
  """Return every body's inertia about the origin of its tree, in world axes; the world's entry is zero."""
  inertias = [Inertia(0.0, vector((0, 0, 0)), Matrix(*[vector((0, 0, 0))] * 3))]
  for body in range(1, model.nbody):
    center = p.relative(body, vector(model.body_ipos[body]))
    axes = Quaternion.constant(model.body_iquat[body]).matrix()
    moments = vector(model.body_inertia[body])
    local = axes.times(Matrix(*(row * m for row, m in zip(axes.transposed, moments, strict=True))))
    rotation = p.rotation[body]
    rotated = local if _is_isotropic(local) else rotation.times(local).times(rotation.transposed)
    inertias.append(Inertia.of_body(number(model.body_mass[body]), center, rotated))
  return inertias


def composite_inertias(model: Model, inertias: list[Inertia]) -> list[Inertia]:
  """Return for every body the inertia of it and all below it."""
  composite = list(inertias)
  for body in reversed(range(1, model.nbody)):
    parent = model.body_parentid[body]
    if model.body_treeid[parent] >= 0:
      composite[parent] = composite[parent] + composite[body]
  return composite


def mass_matrix(model: Model, composite: list[Inertia], cdof: list[Motion]) -> TreeMatrix:
  """Return M [kg m^2, kg m, kg]: M[i, j] for j an ancestor of dof i (Featherstone 2008, table 6.2)."""
  M = TreeMatrix(model)
  for i in range(model.nv):
    force = composite[model.dof_bodyid[i]] @ cdof[i]
    M[i, i] = force.power(cdof[i]) + number(model.dof_armature[i])
    for j in M.ancestors(i):
      M[i, j] = force.power(cdof[j])
  return M


def project(model: Model, p: Poses, forces: Sequence[Force]) -> list[Number]:
  """Return S^T f: the joint forces [nv] of one spatial force per body, those on the bodies below included."""
  carried = list(forces)
  for body in reversed(range(1, model.nbody)):
    parent = model.body_parentid[body]
    if model.body_treeid[parent] >= 0:
      carried[parent] = carried[parent] + carried[body]
  return [carried[model.dof_bodyid[i]].power(p.cdof[i]) for i in range(model.nv)]


def bias_forces(
  model: Model, p: Poses, inertias: list[Inertia], velocity: list[Motion], acceleration: list[Motion]
) -> list[Number]:
  """Return gravity, Coriolis and centrifugal forces [nv] (recursive Newton-Euler; MuJoCo's `qfrc_bias`)."""
  forces = [NO_FORCE]
  for inertia, v, a in zip(inertias[1:], velocity[1:], acceleration[1:], strict=True):
    forces.append(inertia @ a + cross_force(v, inertia @ v))
  return project(model, p, forces)


def tree_centers(model: Model, composite: list[Inertia]) -> dict[int, Vector]:
  """Return for every root body the centre of mass of its tree, relative to the tree origin [m]."""
  roots = sorted({int(root) for body, root in enumerate(model.body_rootid) if body > 0})
  return {root: composite[root].moment * (1.0 / max(constant(composite[root].mass), 1e-15)) for root in roots}


def _is_isotropic(local: Matrix) -> bool:
  values = np.array([[constant(x) for x in row] for row in local])
  return np.allclose(values, values[0, 0] * np.eye(3), rtol=0.0, atol=1e-8 * np.abs(values).max())
