"""Fixed tendons: weighted sums of joint positions.

Source: MuJoCo's XML Reference, tendon/fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

from physics.model import Model
from physics.spatial import dot
from physics.state import State
from physics.trace import Number, number


@dataclass(frozen=True)
class Tendons:
  """Every tendon's length [m, rad], its velocity, and its moment arms by degree of freedom."""

  length: list[Number]  # [ntendon]
  velocity: list[Number]  # [ntendon]
  jacobian: list[dict[int, Number]]  # [ntendon]


def tendons(model: Model, state: State) -> Tendons:
  """Return lengths, velocities and moment arms (MuJoCo's `ten_length`, `ten_velocity`, `ten_J`)."""
  result = Tendons([], [], [])
  for tendon in range(model.ntendon):
    first = int(model.tendon_adr[tendon])
    length: Number = 0.0
    jacobian: dict[int, Number] = {}
    for part in range(first, first + int(model.tendon_num[tendon])):
      joint, coefficient = int(model.wrap_objid[part]), number(model.wrap_prm[part])
      dof = int(model.jnt_dofadr[joint])
      length = length + coefficient * state.qpos[model.jnt_qposadr[joint]]
      jacobian[dof] = coefficient
    result.length.append(length)
    result.velocity.append(dot(jacobian.values(), [state.qvel[dof] for dof in jacobian]))
    result.jacobian.append(jacobian)
  return result
