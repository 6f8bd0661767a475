"""Propagation of float32 rounding in inertias and forces through the inverse of the mass matrix.

After MuJoCo's guide to parity (`mujoco/doc/skills/parity`, section Ill-conditioned mass matrices): an entry
of M is a sum of terms larger than itself, and their rounding errors move a light link at the end of a chain.
"""

from __future__ import annotations

import mujoco
import numpy as np

from physics.engines.mujoco_engine import full_mass_matrix
from physics.model.model import Bools, Floats
from physics.parity.compare import Tolerances, Trial
from physics.parity.reference import converging
from physics.parity.states import States

SOLVED = ("qacc_smooth", "qacc", "qvel")


class IllConditionedTrial(Trial):
  """Trial of a model with light links at the ends of chains, which rounding of M moves at worst."""

  def rounding_bound(self, name: str, tolerances: Tolerances) -> Floats:
    """Return the error [num_states] of a quantity that rounding can explain."""
    bound = super().rounding_bound(name, tolerances)
    if name not in SOLVED:
      return bound
    worst = acceleration_rounding(converging(self.model.mj), self.states, tolerances.dtype)
    return np.maximum(bound, worst[name])


def acceleration_rounding(mj: mujoco.MjModel, states: States, dtype: type[np.floating]) -> dict[str, Floats]:
  """Return per state the relative error [num_states] of qacc_smooth, qacc and the next qvel at worst.

  It is |M^-1| (S |qacc| + |force|) times the machine epsilon, where S is the size of the terms of M.
  """
  data, above = mujoco.MjData(mj), _ancestors(mj)
  rows: dict[str, list[float]] = {name: [] for name in SOLVED}
  for index in range(len(states)):
    mujoco.mj_resetData(mj, data)
    states.load(index, data)
    mujoco.mj_forward(mj, data)
    inverse = np.abs(np.linalg.pinv(full_mass_matrix(mj, data)))
    scale, force = _scale(mj, data, above), np.abs(data.qfrc_smooth)
    for name, acting in (("qacc_smooth", force), ("qacc", force + np.abs(data.qfrc_constraint))):
      size = np.abs(getattr(data, name))
      error = float(np.finfo(dtype).eps) * (inverse @ (scale @ size + acting)).max(initial=0.0)
      rows[name].append(error / max(1.0, size.max(initial=0.0)))
    change = mj.opt.timestep * np.abs(data.qacc).max(initial=0.0)
    rows["qvel"].append(rows["qacc"][-1] * change / max(1.0, np.abs(data.qvel).max(initial=0.0)))
  return {name: np.array(values) for name, values in rows.items()}


def _ancestors(mj: mujoco.MjModel) -> Bools:
  """Return where column j is row i itself or an ancestor of it [nv, nv]."""
  above = np.eye(mj.nv, dtype=bool)
  for i in range(mj.nv):
    if mj.dof_parentid[i] >= 0:
      above[i] |= above[mj.dof_parentid[i]]
  return above


def _scale(mj: mujoco.MjModel, data: mujoco.MjData, above: Bools) -> Floats:
  """Return the size [nv, nv] of the terms that the entries of M sum up."""
  composite = _spatial_inertias(np.abs(data.cinert))
  for body in reversed(range(1, mj.nbody)):
    composite[mj.body_parentid[body]] += composite[body]
  axes = np.abs(data.cdof)
  lower = above * (np.einsum("ijk,ik->ij", composite[mj.dof_bodyid], axes) @ axes.T)
  return lower + np.tril(lower, -1).T + np.diag(mj.dof_armature)


def _spatial_inertias(cinert: Floats) -> Floats:
  """Return 6 x 6 matrices [nbody, 6, 6] of MuJoCo's ten numbers per body, all signs positive."""
  matrices = np.zeros((len(cinert), 6, 6))
  for k, (i, j) in enumerate(((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))):
    matrices[:, i, j] = matrices[:, j, i] = cinert[:, k]
  for k, (i, j) in enumerate(((1, 2), (0, 2), (0, 1))):
    for row, column in ((i, j), (j, i)):
      matrices[:, row, 3 + column] = matrices[:, 3 + column, row] = cinert[:, 6 + k]
  matrices[:, 3:, 3:] = cinert[:, 9, None, None] * np.eye(3)
  return matrices
