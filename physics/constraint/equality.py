"""Equality constraints: points and frames held together, joints and tendons coupled by polynomials.

Source: MuJoCo's manual, chapter Computation, section Constraint model, Equality; XML Reference, equality.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from physics.algebra.spatial import ZERO, Force, Quaternion, Vector, cross, dot, total, vector
from physics.constraint.joint_rows import ConstraintRow, JointRows
from physics.constraint.params import ConstraintParams, constraint_params
from physics.constraint.rows import JacobianRow, joint_row, tendon_row
from physics.dynamics.kinematics import dofs_above, point_jacobian, poses, way_from
from physics.model.model import Model
from physics.smooth import Smooth
from physics.trace.trace import Number, is_zero, number, sqrt

CONNECT, WELD, JOINT, TENDON = range(4)  # mjtEq
ROWS_OF_ATTACHMENT = {CONNECT: 3, WELD: 6}
BODY = 1  # mjtObj
UNTURNED = Quaternion.constant((1.0, 0.0, 0.0, 0.0))


def equality_rows(model: Model, smooth: Smooth) -> Iterator[ConstraintRow]:
  """Yield the rows of all equality constraints that are active from the start (`mj_instantiateEquality`)."""
  for equality in _active(model):
    params = constraint_params(model, model.eq_solref[equality], model.eq_solimp[equality], 0.0)
    if model.eq_type[equality] in ROWS_OF_ATTACHMENT:
      yield from _attachment(model, smooth, equality, params)
    else:
      along, residual = _coupling(model, smooth, equality)
      yield _row(params, along, residual, residual, 0.0)


def attachment_forces(model: Model, smooth: Smooth, rows: JointRows) -> Iterator[tuple[int, Force]]:
  """Yield body and force, about the body's tree origin, of connect and weld constraints.

  `rows` begin with the rows of `equality_rows`.
  """
  first = 0
  for equality in _active(model):
    count = ROWS_OF_ATTACHMENT.get(int(model.eq_type[equality]), 1)
    if count > 1:
      one, two = _anchors(model, smooth, equality)
      f = [rows.row_force(first + k) for k in range(count)]
      torque = ZERO
      if count == 6:
        turn = Misalignment(one.turn, two.turn, number(model.eq_data[equality, 10]))
        torque = turn.torque(Vector(*f[3:]))
      force = Force(torque, Vector(*f[:3]))
      yield one.body, force.moved(one.point)
      yield two.body, force.moved(two.point) * -1.0
    first += count


def _active(model: Model) -> list[int]:
  """Return the constraints that have rows: a constraint between bodies that no joint moves has none."""
  return [
    equality
    for equality in np.flatnonzero(model.eq_active0).tolist()
    if int(model.eq_type[equality]) not in ROWS_OF_ATTACHMENT
    or any(model.body_weldid[body] for body, *_ in _local_frames(model, equality))
  ]


def _row(
  params: ConstraintParams, along: JacobianRow, residual: Number, distance: Number, drift: Number
) -> ConstraintRow:
  """Return a row that drives its residual to zero.

  `distance` is the whole constraint's, `drift` the residual's second derivative at qacc = 0.
  """
  d = params.impedance(distance)
  bias = params.reference(residual, along.velocity, d) + drift
  return ConstraintRow(along.jacobian, along.resistance(d), bias, tendons=along.tendons)


# -- joints and tendons


def _coupling(model: Model, smooth: Smooth, equality: int) -> tuple[JacobianRow, Number]:
  """Return Jacobian row and residual of a position that is a polynomial of another one, or a constant."""
  of_joints = model.eq_type[equality] == JOINT
  one, two = (int(ids[equality]) for ids in (model.eq_obj1id, model.eq_obj2id))
  c0, c1, c2, c3, c4 = (number(x) for x in model.eq_data[equality, :5])
  scalar = _joint if of_joints else _tendon
  along, position = scalar(model, smooth, one)
  if two < 0:
    return along, position - c0
  other, x = scalar(model, smooth, two)
  slope = c1 + x * (2.0 * c2 + x * (3.0 * c3 + x * (4.0 * c4)))
  jacobian = dict(along.jacobian)
  for dof, arm in other.jacobian.items():
    jacobian[dof] = jacobian.get(dof, 0.0) - slope * arm
  inverse_inertia = number(along.inverse_inertia) + number(other.inverse_inertia)
  tendons = {**along.tendons, **{tendon: -slope * share for tendon, share in other.tendons.items()}}
  velocity = along.velocity - slope * other.velocity
  difference = JacobianRow(jacobian, velocity, inverse_inertia, tendons=tendons)
  return difference, position - (c0 + x * (c1 + x * (c2 + x * (c3 + x * c4))))


def _joint(model: Model, smooth: Smooth, joint: int) -> tuple[JacobianRow, Number]:
  """Return a joint's row of the Jacobian and its position from the reference."""
  at = model.jnt_qposadr[joint]
  return joint_row(model, smooth, joint), smooth.state.qpos[at] - number(model.qpos0[at])


def _tendon(model: Model, smooth: Smooth, tendon: int) -> tuple[JacobianRow, Number]:
  """Return a tendon's row of the Jacobian and its length from the reference."""
  length = smooth.tendons.length[tendon] - number(model.tendon_length0[tendon])
  return tendon_row(model, smooth, tendon), length


# -- bodies


@dataclass(frozen=True)
class Anchor:
  """An anchor of a connect or weld constraint: a frame fixed in a body."""

  body: int
  local: Vector  # in the body's frame [m]
  point: Vector  # relative to the body's tree origin [m]
  turn: Quaternion


@dataclass(frozen=True)
class Deviation:
  """The deviation of one frame from another, in three coordinates."""

  residual: Vector
  velocity: Vector
  drift: Vector  # the residual's second derivative at qacc = 0
  columns: dict[int, Vector]  # derivative of the velocity by qvel
  inverse_inertia: Number


@dataclass(frozen=True)
class Misalignment:
  """The vector part of the quaternion e from a second frame to a first one, times a scale [m].

  At an angular velocity w in the second frame's axes e changes at the rate w e / 2.
  """

  one: Quaternion
  two: Quaternion
  scale: Number

  @property
  def error(self) -> Quaternion:
    """The quaternion e."""
    return self.two.conjugate * self.one

  def rate(self, spin: Vector) -> Vector:
    """Return its rate of change at an angular velocity of the first frame relative to the second."""
    w = self.two.matrix().transposed @ spin
    return (w * self.error.w + cross(w, self.error.v)) * (0.5 * self.scale)

  def torque(self, force: Vector) -> Vector:
    """Return the torque on the first frame from a force on the misalignment: the transpose of `rate`."""
    turned = force * self.error.w + cross(self.error.v, force)
    return self.two.matrix() @ (turned * (0.5 * self.scale))


def _attachment(
  model: Model, smooth: Smooth, equality: int, params: ConstraintParams
) -> Iterator[ConstraintRow]:
  """Yield three rows that hold two points together, and for a weld three that hold their frames parallel."""
  one, two = _anchors(model, smooth, equality)
  deviations = [_translation(model, smooth, one, two)]
  if model.eq_type[equality] == WELD:
    scale = number(model.eq_data[equality, 10])
    deviations.append(_rotation(model, smooth, one, two, scale))
  distance = sqrt(total(dot(each.residual, each.residual) for each in deviations))
  for each in deviations:
    for k in range(3):
      jacobian = {dof: column[k] for dof, column in each.columns.items() if not is_zero(column[k])}
      along = JacobianRow(jacobian, each.velocity[k], each.inverse_inertia)
      yield _row(params, along, each.residual[k], distance, each.drift[k])


def _anchors(model: Model, smooth: Smooth, equality: int) -> tuple[Anchor, Anchor]:
  """Return the two anchors that coincide where the constraint holds."""
  p = smooth.poses
  one, two = (
    Anchor(body, local, p.relative(body, local), p.quaternion[body] * turn)
    for body, local, turn in _local_frames(model, equality)
  )
  return one, two


def _local_frames(model: Model, equality: int) -> list[tuple[int, Vector, Quaternion]]:
  """Return body, local position and local rotation of the two anchors.

  If eq_data varies, this takes the place of the compiler's derivation.
  """
  one, two = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
  if model.eq_objtype[equality] != BODY:
    bodies, turns = model.site_bodyid, model.site_quat
    return [(int(bodies[i]), vector(model.site_pos[i]), Quaternion.constant(turns[i])) for i in (one, two)]
  data, follows = model.eq_data[equality], "eq_data" in model.varied
  given, other, turn = vector(data[:3]), vector(data[3:6]), Quaternion.constant(data[6:10])
  if model.eq_type[equality] == CONNECT:
    if follows:
      position, turn = _pose_at_start(model, one, two)
      other = position + turn.matrix() @ given
    return [(one, given, UNTURNED), (two, other, UNTURNED)]
  if follows and model.eq_keeps_pose[equality]:
    position, turn = _pose_at_start(model, two, one)
    other = position + turn.matrix() @ given
  return [(one, other, turn), (two, given, UNTURNED)]


def _pose_at_start(model: Model, body: int, frame: int) -> tuple[Vector, Quaternion]:
  """Return a body's pose in another's frame at qpos0, like `mj_setConst`."""
  p = poses(model, [number(x) for x in model.qpos0])
  inverse = p.quaternion[frame].conjugate
  position = inverse.matrix() @ (p.world(body) - p.world(frame))
  return vector(position), Quaternion.constant((inverse * p.quaternion[body]).components)


def _translation(model: Model, smooth: Smooth, one: Anchor, two: Anchor) -> Deviation:
  """Return the vector from the second frame's origin to the first's."""
  velocities, accelerations = [], []
  for frame in (one, two):
    motion = smooth.velocity[frame.body]
    velocity = motion.at(frame.point)
    velocities.append(velocity)
    # gravity, which acceleration contains, is the same on both sides
    spatial = smooth.acceleration[frame.body].at(frame.point)
    accelerations.append(spatial + cross(motion.angular, velocity))
  return Deviation(
    residual=_apart(model, smooth, one, two),
    velocity=velocities[0] - velocities[1],
    drift=accelerations[0] - accelerations[1],
    columns=_difference(*(point_jacobian(model, smooth.poses, f.body, f.point) for f in (one, two))),
    inverse_inertia=_inverse_inertia(model, one, two, 0),
  )


def _apart(model: Model, smooth: Smooth, one: Anchor, two: Anchor) -> Vector:
  """Return the vector [m] from the second anchor to the first.

  In a loop, as in a gripper, it begins at the body that carries both chains: it is short even where the arm
  that holds the gripper is long.
  """
  p, carrier = smooth.poses, _carrier(model, one.body, two.body)
  if model.body_treeid[carrier] >= 0 and model.body_treeid[model.body_parentid[carrier]] >= 0:
    first, second = (way_from(model, p, smooth.state.qpos, carrier, f.body, f.local) for f in (one, two))
    return first - second
  return (p.origin[one.body] - p.origin[two.body]) + (one.point - two.point)


def _carrier(model: Model, one: int, two: int) -> int:
  """Return the last body that is on the way from the world to both of two bodies."""
  while one != two:
    one, two = (int(model.body_parentid[b]) if b == max(one, two) else b for b in (one, two))
  return one


def _rotation(model: Model, smooth: Smooth, one: Anchor, two: Anchor, scale: Number) -> Deviation:
  """Return the misalignment of the first frame against the second."""
  turn = Misalignment(one.turn, two.turn, scale)
  spins = [smooth.velocity[frame.body].angular for frame in (one, two)]
  changes = [smooth.acceleration[frame.body].angular for frame in (one, two)]
  spin = spins[0] - spins[1]
  angular = ({dof: smooth.poses.cdof[dof].angular for dof in dofs_above(model, f.body)} for f in (one, two))
  return Deviation(
    residual=turn.error.v * scale,
    velocity=turn.rate(spin),
    drift=turn.rate(changes[0] - changes[1] - cross(spins[1], spin))
    - turn.error.v * (0.25 * scale * dot(spin, spin)),
    columns={dof: turn.rate(column) for dof, column in _difference(*angular).items()},
    inverse_inertia=_inverse_inertia(model, one, two, 1),
  )


def _difference(one: dict[int, Vector], two: dict[int, Vector]) -> dict[int, Vector]:
  return {dof: one.get(dof, ZERO) - two.get(dof, ZERO) for dof in sorted({*one, *two})}


def _inverse_inertia(model: Model, one: Anchor, two: Anchor, kind: int) -> Number:
  """Return the summed inverse inertia of two bodies at qpos0: of translation (0) or rotation (1)."""
  return number(model.body_invweight0[one.body, kind]) + number(model.body_invweight0[two.body, kind])
