"""Smooth dynamics: poses, velocities, inertia, and all forces except those of constraints."""

from __future__ import annotations

from dataclasses import dataclass

from physics.actuator.actuation import Actuated, actuate
from physics.algebra.sparse import SparseMatrix
from physics.algebra.spatial import Inertia, Motion
from physics.dynamics.dynamics import bias_forces, body_inertias, composite_inertias, mass_matrix
from physics.dynamics.kinematics import Mocap, Poses, poses, velocities
from physics.dynamics.passive import gravity_compensation, passive_forces
from physics.dynamics.tendon import Tendons, tendons
from physics.model.model import Model
from physics.state.state import State
from physics.trace.trace import Number


@dataclass(frozen=True)
class Smooth:
  """The quantities of one state before constraints; joint forces and matrices have MuJoCo's signs."""

  state: State
  poses: Poses
  inertias: list[Inertia]  # by body, about its tree origin
  composite: list[Inertia]  # by body: of its subtree, about its tree origin
  velocity: list[Motion]  # by body
  acceleration: list[Motion]  # by body: gravity and velocity products, joint accelerations zero
  tendons: Tendons
  M: SparseMatrix
  bias: list[Number]
  passive: list[Number]
  actuated: Actuated
  damping: dict[tuple[int, int], Number]  # negated derivative of passive and actuator forces by velocity

  @property
  def actuator(self) -> list[Number]:
    """Joint forces [nv] of the actuators."""
    return self.actuated.qfrc

  @property
  def force(self) -> list[Number]:
    """Joint forces [nv] without those of constraints: M qacc_smooth."""
    return [p + a - b for p, a, b in zip(self.passive, self.actuator, self.bias, strict=True)]


def smooth_dynamics(model: Model, state: State) -> Smooth:
  """Compute poses, velocities, inertia and all forces except those of constraints.

  MuJoCo's `mj_fwdPosition`, `mj_fwdVelocity` and `mj_fwdActuation`, without contacts and constraints.
  """
  p = poses(model, state.qpos, Mocap(state.mocap_pos, state.mocap_quat))
  velocity, acceleration = velocities(model, p, state.qvel)
  inertias = body_inertias(model, p)
  composite = composite_inertias(model, inertias)
  cords = tendons(model, p, state)
  passive = passive_forces(model, state, p, velocity, cords)
  actuated = actuate(model, p, cords, state, gravity_compensation(model, p))
  damping = dict(passive.damping)
  for at, value in actuated.damping().items():
    damping[at] = damping.get(at, 0.0) + value
  return Smooth(
    state=state,
    poses=p,
    inertias=inertias,
    composite=composite,
    velocity=velocity,
    acceleration=acceleration,
    tendons=cords,
    M=mass_matrix(model, composite, p.cdof),
    bias=bias_forces(model, p, inertias, velocity, acceleration),
    passive=passive.force,
    actuated=actuated,
    damping=damping,
  )
