"""Passive joint forces: springs and dampers."""

from __future__ import annotations

from physics.kinematics import BALL, FREE
from physics.model import Model
from physics.spatial import Quaternion, Vector
from physics.trace import Number, number


def passive_forces(model: Model, qpos: list[Number], qvel: list[Number]) -> list[Number]:
  """Return spring and damper forces [nv] [N, N m] (MuJoCo's `qfrc_passive`)."""
  force: list[Number] = [
    -(number(damping) * velocity) for damping, velocity in zip(model.dof_damping, qvel, strict=True)
  ]
  for joint in range(model.njnt):
    stiffness = number(model.jnt_stiffness[joint])
    if stiffness:
      dof = int(model.jnt_dofadr[joint])
      for k, offset in enumerate(_spring_offset(model, joint, qpos)):
        force[dof + k] = force[dof + k] - stiffness * offset
  return force


def _spring_offset(model: Model, joint: int, qpos: list[Number]) -> list[Number]:
  """Return the displacement [m, rad] from the spring's reference, one per degree of freedom."""
  at, kind = int(model.jnt_qposadr[joint]), model.jnt_type[joint]
  reference = [number(x) for x in model.qpos_spring]
  if kind == FREE:
    return [qpos[at + k] - reference[at + k] for k in range(3)] + list(
      _rotation_between(qpos, reference, at + 3)
    )
  if kind == BALL:
    return list(_rotation_between(qpos, reference, at))
  return [qpos[at] - reference[at]]


def _rotation_between(qpos: list[Number], reference: list[Number], at: int) -> Vector:
  """Return the rotation vector [rad] from the reference orientation to the present one, in its axes."""
  turn = Quaternion.constant(reference[at : at + 4]).conjugate * Quaternion.normalize(qpos[at : at + 4])
  axis, angle = turn.rotation_vector()
  return axis * angle
