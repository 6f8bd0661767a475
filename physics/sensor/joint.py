"""Joint, tendon and actuator sensors."""

from collections.abc import Callable, Sequence

import numpy as np

from physics.actuator.transmission import TENDON
from physics.algebra.spatial import Quaternion, dot, total
from physics.derived import Derived
from physics.sensor.kinds import Kind, Reading, Sensor
from physics.trace.trace import Number, where


def _ball_rotation(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  at = int(sensor.model.jnt_qposadr[sensor.id])
  return Quaternion.normalize(derived.state.qpos[at : at + 4]).components


def _ball_velocity(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  dof = int(sensor.model.jnt_dofadr[sensor.id])
  return derived.state.qvel[dof : dof + 3]


def _actuator_force_on_tendon(derived: Derived, sensor: Sensor) -> Sequence[Number]:
  model, force = sensor.model, derived.smooth.actuated.force
  pulls = (model.actuator_trntype == TENDON) & (model.actuator_trnid[:, 0] == sensor.id)
  return [total(force[actuator] for actuator in np.flatnonzero(pulls))]


def _limit(element: str, read: Callable[[Derived, int], Number]) -> Reading:
  """Return the reading of a limit's constraint row: of the first that acts, zero if none does."""

  def reading(derived: Derived, sensor: Sensor) -> Sequence[Number]:
    result: Number = 0.0
    for i, row in reversed(list(enumerate(derived.evaluation.joints.rows))):
      if row.limit == (element, sensor.id):
        result = where(row.position < 0.0, read(derived, i), result)
    return [result]

  return reading


def _limit_position(derived: Derived, row: int) -> Number:
  return derived.evaluation.joints.rows[row].position


def _limit_velocity(derived: Derived, row: int) -> Number:
  jacobian = derived.evaluation.joints.rows[row].jacobian
  return dot(jacobian.values(), [derived.state.qvel[dof] for dof in jacobian])


def _limit_force(derived: Derived, row: int) -> Number:
  return derived.evaluation.joints.row_force(row)


JOINT_READINGS: dict[Kind, Reading] = {
  Kind.JOINTPOS: lambda derived, sensor: [derived.state.qpos[sensor.model.jnt_qposadr[sensor.id]]],
  Kind.JOINTVEL: lambda derived, sensor: [derived.state.qvel[sensor.model.jnt_dofadr[sensor.id]]],
  Kind.ACTUATORPOS: lambda derived, sensor: [derived.smooth.actuated.length[sensor.id]],
  Kind.ACTUATORVEL: lambda derived, sensor: [derived.smooth.actuated.velocity[sensor.id]],
  Kind.ACTUATORFRC: lambda derived, sensor: [derived.smooth.actuated.force[sensor.id]],
  Kind.TENDONPOS: lambda derived, sensor: [derived.smooth.tendons.length[sensor.id]],
  Kind.TENDONVEL: lambda derived, sensor: [derived.smooth.tendons.velocity[sensor.id]],
  Kind.TENDONACTFRC: _actuator_force_on_tendon,
  Kind.JOINTACTFRC: lambda derived, sensor: [derived.smooth.actuator[sensor.model.jnt_dofadr[sensor.id]]],
  Kind.BALLQUAT: _ball_rotation,
  Kind.BALLANGVEL: _ball_velocity,
  Kind.JOINTLIMITPOS: _limit("joint", _limit_position),
  Kind.JOINTLIMITVEL: _limit("joint", _limit_velocity),
  Kind.JOINTLIMITFRC: _limit("joint", _limit_force),
  Kind.TENDONLIMITPOS: _limit("tendon", _limit_position),
  Kind.TENDONLIMITVEL: _limit("tendon", _limit_velocity),
  Kind.TENDONLIMITFRC: _limit("tendon", _limit_force),
}
