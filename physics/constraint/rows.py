"""Constraint rows of friction loss and limits, for joints and tendons, in MuJoCo's order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from physics.algebra.spatial import MINVAL, Quaternion, dot
from physics.constraint.joint_rows import ConstraintRow
from physics.constraint.params import ConstraintParams, constraint_params
from physics.dynamics.kinematics import BALL, FREE
from physics.dynamics.tendon import is_spatial
from physics.model.model import Model
from physics.smooth import Smooth
from physics.trace.trace import Number, Scalar, absolute, is_zero, maximum, minimum, number, where


@dataclass(frozen=True)
class JacobianRow:
  """The Jacobian row of a constraint: of a joint, a tendon, or a point of one body against another."""

  jacobian: dict[int, Number]  # J, by degree of freedom
  velocity: Number  # J qvel
  inverse_inertia: Any  # at qpos0 (MuJoCo's invweight0)
  owner: tuple[str, int] | None = None  # "joint" or "tendon", and its number
  tendons: Mapping[int, Number] = field(default_factory=dict)  # forces [N] along spatial ones, for one here

  def resistance(self, impedance: Number) -> Number:
    """Return D of a row with this impedance: at most 1 / MINVAL, its value where nothing can move."""
    inverse_inertia = number(self.inverse_inertia)
    if not isinstance(inverse_inertia, Scalar) and inverse_inertia <= MINVAL:
      return 1.0 / MINVAL
    return impedance * (1.0 / maximum(inverse_inertia, MINVAL)) / (1.0 - impedance)


def friction_rows(model: Model, smooth: Smooth) -> Iterator[ConstraintRow]:
  """Yield the rows of friction loss, joints before tendons (MuJoCo's `mj_instantiateFriction`)."""
  if not model.frictionloss_enabled:
    return
  for dof, velocity in enumerate(smooth.state.qvel):
    if not is_zero(model.dof_frictionloss[dof]):
      along = JacobianRow({dof: 1.0}, velocity, model.dof_invweight0[dof])
      params = constraint_params(model, model.dof_solref[dof], model.dof_solimp[dof], 0.0)
      yield _friction(params, along, number(model.dof_frictionloss[dof]))
  for tendon in range(model.ntendon):
    if not is_zero(model.tendon_frictionloss[tendon]):
      along = tendon_row(model, smooth, tendon)
      params = constraint_params(model, model.tendon_solref_fri[tendon], model.tendon_solimp_fri[tendon], 0.0)
      yield _friction(params, along, number(model.tendon_frictionloss[tendon]))


def limit_rows(model: Model, smooth: Smooth) -> Iterator[ConstraintRow]:
  """Yield the rows of limits, joints before tendons (MuJoCo's `mj_instantiateLimit`)."""
  if not model.limit_enabled:
    return
  for joint in range(model.njnt):
    if model.jnt_limited[joint] and model.jnt_type[joint] != FREE:
      solref, solimp = model.jnt_solref[joint], model.jnt_solimp[joint]
      limit = constraint_params(model, solref, solimp, number(model.jnt_margin[joint]))
      bounds = model.jnt_range[joint]
      if model.jnt_type[joint] == BALL:
        yield _cone_limit(model, smooth, joint, limit)
      else:
        position = smooth.state.qpos[model.jnt_qposadr[joint]]
        yield from _range_limits(limit, joint_row(model, smooth, joint), position, bounds)
  for tendon in range(model.ntendon):
    if model.tendon_limited[tendon]:
      solref, solimp = model.tendon_solref_lim[tendon], model.tendon_solimp_lim[tendon]
      limit = constraint_params(model, solref, solimp, number(model.tendon_margin[tendon]))
      length, bounds = smooth.tendons.length[tendon], model.tendon_range[tendon]
      yield from _range_limits(limit, tendon_row(model, smooth, tendon), length, bounds)


def joint_row(model: Model, smooth: Smooth, joint: int) -> JacobianRow:
  """Return the row of the Jacobian for a slide or hinge joint's position."""
  dof = int(model.jnt_dofadr[joint])
  return JacobianRow({dof: 1.0}, smooth.state.qvel[dof], model.dof_invweight0[dof], ("joint", joint))


def tendon_row(model: Model, smooth: Smooth, tendon: int) -> JacobianRow:
  """Return the row of the Jacobian for a tendon's length."""
  jacobian, velocity = smooth.tendons.jacobian[tendon], smooth.tendons.velocity[tendon]
  tendons = {tendon: 1.0} if is_spatial(model, tendon) else {}
  return JacobianRow(jacobian, velocity, model.tendon_invweight0[tendon], ("tendon", tendon), tendons)


def _friction(params: ConstraintParams, along: JacobianRow, loss: Number) -> ConstraintRow:
  D = along.resistance(params.impedance(0.0))
  bias = params.damping * along.velocity
  return ConstraintRow(along.jacobian, D, bias, -loss, loss, tendons=along.tendons)


def _range_limits(
  limit: ConstraintParams, along: JacobianRow, position: Number, bounds: Sequence[Any]
) -> list[ConstraintRow]:
  """Return the rows of both limits, or of the nearer one where only one can act."""
  low, high = (number(x) for x in bounds)
  below, above = position - low, high - position
  both_can_act = high - low <= 2.0 * limit.margin
  if both_can_act is not False:
    return [_limit(limit, along, below, 1.0), _limit(limit, along, above, -1.0)]
  return [_limit(limit, along, minimum(below, above), where(below < above, 1.0, -1.0))]


def _cone_limit(model: Model, smooth: Smooth, joint: int, limit: ConstraintParams) -> ConstraintRow:
  """Return the row that limits a ball joint's angle from its reference."""
  at, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
  axis, angle = Quaternion.normalize(smooth.state.qpos[at : at + 4]).rotation_vector()
  velocity = dot(axis, smooth.state.qvel[dof : dof + 3])
  arms = {dof + k: axis[k] for k in range(3)}
  along = JacobianRow(arms, velocity, model.dof_invweight0[dof], ("joint", joint))
  low, high = (number(x) for x in model.jnt_range[joint])
  return _limit(limit, along, maximum(low, high) - absolute(angle), where(angle < 0.0, 1.0, -1.0))


def _limit(limit: ConstraintParams, along: JacobianRow, distance: Number, sign: Number) -> ConstraintRow:
  """Return the row of one limit: the distance from it grows at `sign` times the row's velocity."""
  position = distance - limit.margin
  d = limit.impedance(position)
  D = where(position < 0.0, along.resistance(d), 0.0)
  jacobian = {dof: arm * sign for dof, arm in along.jacobian.items()}
  bias = limit.reference(position, along.velocity * sign, d)
  tendons = {tendon: share * sign for tendon, share in along.tendons.items()}
  return ConstraintRow(jacobian, D, bias, 0.0, limit=along.owner, position=position, tendons=tendons)
