"""Passive joint forces: springs, dampers, gravity compensation, drag; and their derivatives by velocity.

Source: MuJoCo's manual, chapter Computation, section Passive forces.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from physics.algebra.sparse import At
from physics.algebra.spatial import NO_FORCE, Force, Motion, Quaternion, Vector, dot, vector
from physics.dynamics.dynamics import project
from physics.dynamics.ellipsoid import Ellipsoid, ellipsoids
from physics.dynamics.fluid import Drag, drags
from physics.dynamics.kinematics import BALL, FREE, Poses
from physics.dynamics.plastic import rest_position, rest_range
from physics.dynamics.tendon import Tendons
from physics.model.model import Model
from physics.state.state import State
from physics.trace.each import mapped
from physics.trace.trace import Number, absolute, is_zero, maximum, minimum, number, sqrt


@dataclass(frozen=True)
class Passive:
  """The passive forces and their damping."""

  force: list[Number]  # [nv] (MuJoCo's `qfrc_passive`)
  damping: dict[At, Number]  # symmetric part of the negated derivative by velocity, lower triangle


def passive_forces(model: Model, state: State, p: Poses, velocity: list[Motion], tendons: Tendons) -> Passive:
  """Return springs, dampers, gravity compensation and fluid (MuJoCo's `mj_passive`); `velocity` [nbody]."""
  force = mapped(lambda a, b: a + b, _springs(model, state), _dampers(model, state.qvel))
  for tendon, jacobian in enumerate(tendons.jacobian):
    along = tendon_force(model, state, tendons, tendon)
    for dof, arm in jacobian.items():
      force[dof] = force[dof] + arm * along
  compensation = gravity_compensation(model, p)
  drag: list[Drag | Ellipsoid] = [*drags(model, p, velocity), *ellipsoids(model, p, velocity)]
  pushes: dict[int, Force] = {}
  for each in drag:
    pushes[each.body] = pushes.get(each.body, NO_FORCE) + each.force
  dragged = _project(model, p, pushes)
  own = (~model.jnt_actgravcomp[model.dof_jntid]).astype(float)  # not through actuators
  force = mapped(lambda f, drag, lift, share: f + drag + lift * share, force, dragged, compensation, own)
  return Passive(force, _damping(model, p, state.qvel, tendons, drag))


def spring_energy(model: Model, state: State, tendons: Tendons) -> Number:
  """Return the energy [J] of the springs of joints and tendons."""
  energy: Number = 0.0
  for joint in range(model.njnt):
    stiffness, higher = model.jnt_stiffness[joint], model.jnt_stiffnesspoly[joint]
    if not _is_absent(stiffness, higher):
      for offset in _spring_offsets(model, joint, state):
        energy = energy + _energy(stiffness, higher, _size(offset))
  for tendon, stiffness in enumerate(model.tendon_stiffness):
    stretch = _stretch(model, state, tendons, tendon)
    energy = energy + _energy(stiffness, model.tendon_stiffnesspoly[tendon], stretch)
  return energy


def gravity_compensation(model: Model, p: Poses) -> list[Number]:
  """Return the joint forces [nv] that carry the compensated part of the weight (`qfrc_gravcomp`)."""
  lifts = {}
  for body in np.flatnonzero(model.body_gravcomp).tolist():
    center = p.relative(body, vector(model.body_ipos[body]))
    lifted = number(model.body_mass[body]) * number(model.body_gravcomp[body])
    lifts[body] = Force.at(center, -vector(model.gravity) * lifted)
  return _project(model, p, lifts)


def damper_slopes(model: Model, qvel: list[Number]) -> list[Number]:
  """Return the negated derivative [nv] of the joints' dampers by their velocities."""
  coefficients = zip(model.dof_damping, model.dof_dampingpoly, qvel, strict=True)
  return [_slope(b, higher, absolute(v)) for b, higher, v in coefficients]


def _polynomial(linear: Any, higher: Sequence[Any], x: Number) -> Number:
  """Return linear + higher[0] x + higher[1] x^2: force by displacement, or by velocity."""
  return number(linear) + x * (number(higher[0]) + x * number(higher[1]))


def _energy(linear: Any, higher: Sequence[Any], x: Number) -> Number:
  """Return the integral of x times `_polynomial` from zero to x."""
  return x * x * (0.5 * number(linear) + x * (number(higher[0]) / 3.0 + x * (0.25 * number(higher[1]))))


def _is_absent(linear: Any, higher: Sequence[Any]) -> bool:
  return is_zero(linear) and all(is_zero(x) for x in higher)


def _size(offset: Sequence[Number]) -> Number:
  return offset[0] if len(offset) == 1 else sqrt(dot(offset, offset))


def _slope(linear: Any, higher: Sequence[Any], x: Number) -> Number:
  """Return the derivative of x times `_polynomial` at x >= 0."""
  return number(linear) + x * (2.0 * number(higher[0]) + x * (3.0 * number(higher[1])))


def _springs(model: Model, state: State) -> list[Number]:
  """Return the forces [nv] of the joints' springs."""
  force: list[Number] = [0.0] * model.nv
  for joint in range(model.njnt):
    stiffness, higher = model.jnt_stiffness[joint], model.jnt_stiffnesspoly[joint]
    if _is_absent(stiffness, higher):
      continue
    dof = int(model.jnt_dofadr[joint])
    for offset in _spring_offsets(model, joint, state):
      k = _polynomial(stiffness, higher, _size(offset))
      force[dof : dof + len(offset)] = [-(k * x) for x in offset]
      dof += len(offset)
  return force


def _dampers(model: Model, qvel: list[Number]) -> list[Number]:
  """Return the forces [nv] of the joints' dampers."""
  coefficients = (model.dof_damping, *model.dof_dampingpoly.T)
  return mapped(lambda v, b, *higher: -(_polynomial(b, higher, absolute(v)) * v), qvel, *coefficients)


def tendon_force(model: Model, state: State, tendons: Tendons, tendon: int) -> Number:
  """Return the force of a tendon's spring, slack within its range at rest, and of its damper."""
  stretch, velocity = _stretch(model, state, tendons, tendon), tendons.velocity[tendon]
  k = _polynomial(model.tendon_stiffness[tendon], model.tendon_stiffnesspoly[tendon], stretch)
  b = _polynomial(model.tendon_damping[tendon], model.tendon_dampingpoly[tendon], absolute(velocity))
  return -(k * stretch) - b * velocity


def _stretch(model: Model, state: State, tendons: Tendons, tendon: int) -> Number:
  """Return a tendon's stretch, or (negative) compression, beyond the range where its spring is slack."""
  low, high = rest_range(model, state.plastic, tendon)
  length = tendons.length[tendon]
  return maximum(length - high, 0.0) + minimum(length - low, 0.0)


def _damping(
  model: Model, p: Poses, qvel: list[Number], tendons: Tendons, drag: list[Drag | Ellipsoid]
) -> dict[At, Number]:
  """Return the damping of joints, tendons and drag."""
  damping = {(i, i): slope for i, slope in enumerate(damper_slopes(model, qvel))}
  added = [_tendon_damping(model, tendons), *(each.damping(model, p) for each in drag)]
  for at, value in chain.from_iterable(added):
    damping[at] = damping.get(at, 0.0) + value
  return damping


def _tendon_damping(model: Model, tendons: Tendons) -> Iterator[tuple[At, Number]]:
  """Yield the tendons' terms of the lower triangle of the damping."""
  for tendon, row in enumerate(tendons.jacobian):
    speed = absolute(tendons.velocity[tendon])
    slope = _slope(model.tendon_damping[tendon], model.tendon_dampingpoly[tendon], speed)
    yield from (((i, j), slope * row[i] * row[j]) for i in row for j in row if j <= i)


def _project(model: Model, p: Poses, forces: dict[int, Force]) -> list[Number]:
  """Return the joint forces [nv] of forces on bodies."""
  if not forces:
    return [0.0] * model.nv
  return project(model, p, [forces.get(body, NO_FORCE) for body in range(model.nbody)])


def _spring_offsets(model: Model, joint: int, state: State) -> list[Sequence[Number]]:
  """Return displacements [m, rad] from the spring's reference: a slide's or hinge's, or vectors."""
  at, kind = int(model.jnt_qposadr[joint]), model.jnt_type[joint]
  qpos, reference = state.qpos, rest_position(model, state.plastic)
  if kind == FREE:
    moved = [qpos[at + k] - reference[at + k] for k in range(3)]
    return [moved, _rotation_between(qpos, reference, at + 3)]
  if kind == BALL:
    return [_rotation_between(qpos, reference, at)]
  return [[qpos[at] - reference[at]]]


def _rotation_between(qpos: list[Number], reference: list[Number], at: int) -> Vector:
  """Return the rotation vector [rad] from the reference orientation to the present one, in its axes."""
  turn = Quaternion.constant(reference[at : at + 4]).conjugate * Quaternion.normalize(qpos[at : at + 4])
  axis, angle = turn.rotation_vector()
  return axis * angle
