"""The equations of motion M qacc + bias = force: composite rigid bodies and recursive Newton-Euler."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from physics.algebra.sparse import SparseMatrix
from physics.algebra.spatial import (
  FLAT,
  NO_FORCE,
  ZERO,
  Force,
  Inertia,
  Matrix,
  Motion,
  Quaternion,
  Stiffness,
  Vector,
  vector,
)
from physics.dynamics.bodies import bodies, dofs, leaves_first
from physics.dynamics.kinematics import Poses
from physics.dynamics.reference import has_thin_bodies
from physics.dynamics.tendon import tendon_acceleration, tendon_jacobian
from physics.model.model import Model
from physics.trace.each import Each, alike, entry, follow, numbers, repeating
from physics.trace.rows import rows
from physics.trace.trace import Number, Scalar, is_zero, number

Summand = TypeVar("Summand", Inertia, Force, Stiffness)


def ancestors(model: Model, dof: int) -> Iterator[int]:
  """Yield the dofs above a dof, nearest first."""
  while (dof := int(model.dof_parentid[dof])) >= 0:
    yield dof


def body_inertias(model: Model, p: Poses) -> list[Inertia]:
  """Return the bodies' inertias [nbody] about their references, in world axes; the world's is zero."""
  inertias = rows(p.program, Inertia, model.nbody)
  inertias[0] = Inertia(0.0, vector((0, 0, 0)), Matrix(*[vector((0, 0, 0))] * 3))
  for body in bodies(model, p.program):
    center = _center(model, p, body)
    axes = Quaternion.constant(entry(model.body_iquat, body)).matrix()
    moments = Vector(*map(number, entry(model.body_inertia, body)))
    local = axes.times(Matrix(*(row * m for row, m in zip(axes.transposed, moments, strict=True))))
    rotation = p.rotation[body]
    rotated = local if _is_isotropic(local) else rotation.times(local).times(rotation.transposed)
    inertias[body] = Inertia.of_body(number(entry(model.body_mass, body)), center, rotated)
  return inertias


def _center(model: Model, p: Poses, body: Each) -> Vector:
  """Return the centre of mass of a body, relative to its reference."""
  return p.position[body] - p.reference[body] + p.rotation[body] @ vector(entry(model.body_ipos, body))


def composite_inertias(model: Model, p: Poses, inertias: list[Inertia]) -> list[Inertia]:
  """Return for every body the inertia of it and all below it, [nbody] as `inertias` (MuJoCo's `mj_crb`)."""
  return sums_below(model, Inertia, inertias, p.reference)


def sums_below(
  model: Model, kind: type[Summand], values: list[Summand], reference: Sequence[Vector] = ()
) -> list[Summand]:
  """Return for every body that moves the sum over it and all below it; the others keep their value.

  Values are about the tree's origin, or about the body's `reference` [nbody].
  """
  program = repeating(values)
  if program and not (model.body_treeid[model.body_parentid[1:]] >= 0).any():
    return values
  sums = rows(program, kind, values, sums=True)
  for body in leaves_first(model, program):
    parent = follow(model.body_parentid, body)
    if alike(model.body_treeid, parent) >= 0:
      own = sums[body].moved(reference[body] - reference[parent]) if reference else sums[body]
      sums[parent] = sums[parent] + own
  return sums


def mass_matrix(model: Model, p: Poses, composite: Sequence[Inertia]) -> SparseMatrix:
  """Return M [nv, nv]: its entries (i, j) for j an ancestor of dof i, or i itself (MuJoCo's `mj_makeM`).

  Units are kg m^2, kg m and kg. Like MuJoCo's, it leaves out the coupling of branches by a tendon's
  armature.
  Source: Featherstone 2008, table 6.2.
  """
  M = joint_space(model, composite, p.near_cdof, p.reference)
  M = M.add({(i, i): number(armature) for i, armature in enumerate(model.dof_armature)})
  for tendon in inert_tendons(model):
    armature, arms = number(model.tendon_armature[tendon]), tendon_jacobian(model, p, tendon)
    pairs = ((i, j) for i in arms for j in arms if (i, j) in M.entries)
    M = M.add({(i, j): armature * arms[i] * arms[j] for i, j in pairs})
  return M


def inert_tendons(model: Model) -> list[int]:
  """Return the tendons with armature."""
  return [tendon for tendon, armature in enumerate(model.tendon_armature) if not is_zero(armature)]


def joint_space(
  model: Model,
  composite: Sequence[Inertia | Stiffness | None],
  cdof: list[Motion],
  reference: Sequence[Vector] = (),
) -> SparseMatrix:
  """Return S^T C S [nv, nv] for matrices C [nbody], each the sum over a body and all below; None is zero.

  C and S are about the tree's origin, or about the body's `reference` [nbody].
  """
  result = SparseMatrix(model.nv)
  for i in range(model.nv):
    body = int(model.dof_bodyid[i])
    matrix = composite[body]
    force = matrix @ cdof[i] if matrix else NO_FORCE
    for j in (i, *ancestors(model, i)):
      above = int(model.dof_bodyid[j])
      if reference and above != body:
        force, body = force.moved(reference[body] - reference[above]), above
      result[i, j] = force.power(cdof[j])
  return result


def project(model: Model, p: Poses, forces: list[Force], near: bool = False) -> list[Number]:
  """Return S^T f: the joint forces [nv] of one spatial force per body, forces on the bodies below included.

  Forces are about the trees' origins, or, `near`, about the bodies' references.
  """
  if p.program and not repeating(forces):
    forces = rows(p.program, Force, forces)
  carried = sums_below(model, Force, forces, p.reference if near else ())
  cdof, result = p.near_cdof if near else p.cdof, numbers(p.program, model.nv)
  for body in bodies(model, p.program):
    for dof in dofs(model, body):
      result[dof] = carried[body].power(cdof[dof])
  return result


def bias_forces(
  model: Model, p: Poses, inertias: list[Inertia], velocity: list[Motion], acceleration: list[Motion]
) -> list[Number]:
  """Return gravity, Coriolis and centrifugal forces [nv] (`qfrc_bias`).

  Bodies take recursive Newton-Euler (MuJoCo's `mj_rne`); tendons with armature take the acceleration of their
  lengths (`mj_tendonBias`).
  """
  forces = rows(p.program, Force, model.nbody)
  forces[0], by_axes = NO_FORCE, has_thin_bodies(model)
  for body in bodies(model, p.program):
    near = p.reference[body]
    v, a = velocity[body].about(near), acceleration[body].about(near)
    forces[body] = _force_by_axes(model, p, body, v, a) if by_axes else inertias[body].force(v, a)
  bias = project(model, p, forces, near=True)
  for tendon in inert_tendons(model):
    pull = number(model.tendon_armature[tendon]) * tendon_acceleration(
      model, p, tendon, velocity, acceleration
    )
    for dof, arm in tendon_jacobian(model, p, tendon).items():
      bias[dof] = bias[dof] + arm * pull
  return bias


def _force_by_axes(model: Model, p: Poses, body: Each, velocity: Motion, acceleration: Motion) -> Force:
  """Return `Inertia.force` with the torque about the centre of mass by principal axes (Euler's equations).

  In them equal moments of inertia cancel exactly.
  """
  mass, m = number(entry(model.body_mass, body)), Vector(*map(number, entry(model.body_inertia, body)))
  axes = p.rotation[body].times(Quaternion.constant(entry(model.body_iquat, body)).matrix())
  w, rate = axes.transposed @ velocity.angular, axes.transposed @ acceleration.angular
  torque = Vector(*(m[k] * rate[k] + (m[k - 1] - m[k - 2]) * w[k - 2] * w[k - 1] for k in range(3)))
  point = Inertia.of_body(mass, _center(model, p, body), FLAT)
  return point.force(velocity, acceleration) + Force(axes @ torque, ZERO)


def _is_isotropic(local: Matrix) -> bool:
  """Return whether an inertia is known to be the same about all axes."""
  if any(isinstance(x, Scalar) for row in local for x in row):
    return False
  values = np.array(local, float)
  return np.allclose(values, values[0, 0] * np.eye(3), rtol=0.0, atol=1e-12 * np.abs(values).max())
