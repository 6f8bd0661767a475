"""Fixed tendons: weighted sums of joint positions.

Source: MuJoCo's XML Reference, tendon/fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

from physics.algebra.spatial import dot
from physics.model.model import Model
from physics.state.state import State
from physics.trace.trace import Number, number


@dataclass(frozen=True)
class Tendons:
  """The lengths [m, rad] of all tendons, their velocities, and their moment arms by degree of freedom."""

  length: list[Number]  # [ntendon]
  velocity: list[Number]  # [ntendon]
  jacobian: list[dict[int, Number]]  # [ntendon]


def tendons(model: Model, state: State) -> Tendons:
  """Return `ten_length`, `ten_velocity` and moment arms `ten_J` [ntendon] (MuJoCo's `mj_tendon`)."""
  jacobian = [tendon_jacobian(model, tendon) for tendon in range(model.ntendon)]
  positions = [state.qpos[model.jnt_qposadr[joint]] for joint in model.dof_jntid]
  length, velocity = (
    [dot(row.values(), [values[dof] for dof in row]) for row in jacobian]
    for values in (positions, state.qvel)
  )
  return Tendons(length, velocity, jacobian)


def tendon_jacobian(model: Model, tendon: int) -> dict[int, Number]:
  """Return a tendon's moment arms by degree of freedom: they do not depend on the pose."""
  first = int(model.tendon_adr[tendon])
  parts = range(first, first + int(model.tendon_num[tendon]))
  return {int(model.jnt_dofadr[model.wrap_objid[part]]): number(model.wrap_prm[part]) for part in parts}
