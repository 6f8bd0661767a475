"""Inverse inertia in the reference pose, `*_invweight0`, which scales the softness of constraints."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from physics.algebra.sparse import SparseFactor
from physics.algebra.spatial import total, vector
from physics.dynamics.dynamics import body_inertias, composite_inertias, mass_matrix
from physics.dynamics.kinematics import BALL, FREE, Poses, dofs_above, poses
from physics.dynamics.tendon import tendon_jacobian
from physics.model.model import Model
from physics.trace.trace import Number, number

SLIDES_ONLY = 2  # body_simple of a body that slides along its axes and does not turn


def inverse_weights(model: Model) -> dict[str, Any]:
  """Return body_invweight0 [nbody, 2], dof_invweight0 [nv] and tendon_invweight0 [ntendon].

  They are the diagonal of J M^-1 J^T in the pose qpos0. A body has the mean over the translations of its
  centre of mass and the mean over its rotations; ball and free joints likewise (MuJoCo's `mj_setConst`).
  """
  p = poses(model, [number(x) for x in model.qpos0])
  M = mass_matrix(model, p, composite_inertias(model, p, body_inertias(model, p)))
  factor = M.factor()
  weights = {
    "body_invweight0": [_body_weights(model, p, factor, body) for body in range(model.nbody)],
    "dof_invweight0": _dof_weights(model, factor),
    "tendon_invweight0": [_diagonal(factor, tendon_jacobian(model, p, i)) for i in range(model.ntendon)],
  }
  shapes = {name: getattr(model, name).shape for name in weights}
  return {name: np.array(values, object).reshape(shapes[name]) for name, values in weights.items()}


def _diagonal(factor: SparseFactor, row: Mapping[int, Number]) -> Number:
  """Return J M^-1 J^T of one row J."""
  half = factor.half_solve([row.get(dof, 0.0) for dof in range(factor.L.n)])
  return total(x * x * inverse for x, inverse in zip(half, factor.inverse, strict=True))


def _body_weights(model: Model, p: Poses, factor: SparseFactor, body: int) -> list[Number]:
  if not model.body_dofnum[model.body_weldid[body]]:
    return [0.0, 0.0]
  if model.body_simple[body] == SLIDES_ONLY:
    return [1.0 / number(model.body_mass[body]), 0.0]
  center = p.relative(body, vector(model.body_ipos[body]))
  columns = {dof: p.cdof[dof] for dof in dofs_above(model, body)}
  motions = (
    [{dof: motion.at(center)[k] for dof, motion in columns.items()} for k in range(3)],
    [{dof: motion.angular[k] for dof, motion in columns.items()} for k in range(3)],
  )
  return [_mean([_diagonal(factor, row) for row in rows]) for rows in motions]


def _dof_weights(model: Model, factor: SparseFactor) -> list[Number]:
  weights = []
  for joint in range(model.njnt):
    dof, kind, body = int(model.jnt_dofadr[joint]), model.jnt_type[joint], model.jnt_bodyid[joint]
    if model.body_simple[body] == SLIDES_ONLY:
      weights.append(1.0 / number(model.body_mass[body]))
      continue
    for _ in range(2 if kind == FREE else 1):
      dofs = range(dof, dof + (3 if kind in (FREE, BALL) else 1))
      weights += [_mean([_diagonal(factor, {i: 1.0}) for i in dofs])] * len(dofs)
      dof += len(dofs)
  return weights


def _mean(values: Sequence[Number]) -> Number:
  return total(values) * (1.0 / len(values))
