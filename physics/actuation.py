"""Actuators: controls to joint forces."""

from __future__ import annotations

from physics.kinematics import BALL, FREE
from physics.model import Model
from physics.spatial import Quaternion, dot
from physics.trace import Number, clip, number


def actuator_forces(model: Model, qpos: list[Number], qvel: list[Number], ctrl: list[Number]) -> list[Number]:
  """Return the joint forces [nv] of affine actuators: gain * ctrl + bias, both affine in length and velocity.

  Controls, actuator forces and summed joint forces are limited as the model says (MuJoCo's `qfrc_actuator`).
  """
  total: list[Number] = [0.0] * model.nv
  for actuator in range(model.nu):
    control = ctrl[actuator]
    if model.actuator_ctrllimited[actuator]:
      control = clip(control, *map(number, model.actuator_ctrlrange[actuator]))
    length, moment = _transmission(model, actuator, qpos)
    velocity = dot(moment.values(), [qvel[dof] for dof in moment])
    terms = (1.0, length, velocity)
    force = dot(map(number, model.actuator_gainprm[actuator]), terms) * control
    force = force + dot(map(number, model.actuator_biasprm[actuator]), terms)
    if model.actuator_forcelimited[actuator]:
      force = clip(force, *map(number, model.actuator_forcerange[actuator]))
    for dof, arm in moment.items():
      total[dof] = total[dof] + force * arm
  for joint in range(model.njnt):
    if model.jnt_actfrclimited[joint]:
      dof = int(model.jnt_dofadr[joint])
      total[dof] = clip(total[dof], *map(number, model.jnt_actfrcrange[joint]))
  return total


def _transmission(model: Model, actuator: int, qpos: list[Number]) -> tuple[Number, dict[int, Number]]:
  """Return an actuator's length and its moment arms by dof."""
  joint, gear = int(model.actuator_trnid[actuator]), [number(x) for x in model.actuator_gear[actuator]]
  at, dof, kind = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]), model.jnt_type[joint]
  if kind == FREE:
    return 0.0, {dof + k: gear[k] for k in range(6)}
  if kind == BALL:
    axis, angle = Quaternion.normalize(qpos[at : at + 4]).rotation_vector()
    return dot(axis * angle, gear[:3]), {dof + k: gear[k] for k in range(3)}
  return gear[0] * qpos[at], {dof: gear[0]}
