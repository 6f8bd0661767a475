"""Smooth dynamics: poses, velocities, inertia, and all forces except constraint forces."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import add

from physics.actuator.actuation import Actuated, actuate
from physics.actuator.transmission import Pulls
from physics.algebra.block_matrix import Factor, factored
from physics.algebra.sparse import At, SparseMatrix
from physics.algebra.spatial import Inertia, Motion
from physics.dynamics.dynamics import (
  bias_forces,
  body_inertias,
  composite_inertias,
  inert_tendons,
  mass_matrix,
)
from physics.dynamics.kinematics import Mocap, Poses, poses, propagate, velocities
from physics.dynamics.passive import gravity_compensation, passive_forces
from physics.dynamics.reference import has_light_links, has_thin_bodies, has_uneven_objects
from physics.dynamics.tendon import Tendons, tendons
from physics.dynamics.tree_inertia import TreeInertia
from physics.model.model import Model
from physics.state.state import State
from physics.trace.each import mapped
from physics.trace.rows import mapped_rows
from physics.trace.trace import Number, Program, number

Balance = Callable[[list[Number]], list[Number]]  # joint forces [nv] that an acceleration leaves


@dataclass(frozen=True)
class Smooth:
  """The quantities of one state before constraints; joint forces and matrices have MuJoCo's signs."""

  state: State
  poses: Poses
  inertias: list[Inertia]  # by body, about its reference
  composite: list[Inertia]  # by body: of its subtree, about its reference; empty where nothing asks for it
  velocity: list[Motion]  # by body
  acceleration: list[Motion]  # by body: gravity and velocity products, joint accelerations zero
  tendons: Tendons
  M: SparseMatrix | TreeInertia
  bias: list[Number]
  passive: list[Number]
  passive_damping: dict[At, Number]  # negated derivative of passive forces by velocity
  actuated: Actuated
  damping: dict[At, Number]  # negated derivative of passive and actuator forces by velocity

  @property
  def actuator(self) -> list[Number]:
    """Joint forces [nv] of the actuators."""
    return self.actuated.qfrc

  @cached_property
  def force(self) -> list[Number]:
    """Joint forces [nv] without constraint forces: M qacc_smooth."""
    return mapped(lambda p, a, b: p + a - b, self.passive, self.actuator, self.bias)

  def accelerations(self, model: Model, qacc: list[Number]) -> list[Motion]:
    """Return by body its acceleration about the tree origin at `qacc` [nv], gravity included."""
    return mapped_rows(Motion, add, self.acceleration, propagate(model, self.poses, qacc))

  def unconstrained(self, program: Program, model: Model) -> list[Number]:
    """Return qacc_smooth [nv]."""
    return solution(model, factored(program, self.M), self.force, partial(self.unbalanced, model))

  def unbalanced(self, model: Model, qacc: list[Number]) -> list[Number]:
    """Return the unbalanced joint forces [nv] at an acceleration; M qacc + bias would round each part.

    Newton-Euler adds up the forces that bodies need, far smaller ones where a chain gives way.
    """
    moving = self.accelerations(model, qacc)
    needed = bias_forces(model, self.poses, self.inertias, self.velocity, moving)
    armature = [number(x) for x in model.dof_armature]
    return mapped(
      lambda p, u, n, own, a: p + u - n - own * a, self.passive, self.actuator, needed, armature, qacc
    )

  def stuck(self, forces: list[Number]) -> "Smooth":
    """Return the same with the joint forces [nv] of the geoms' adhesion, which count as passive."""
    return replace(self, passive=mapped(lambda p, f: p + f, self.passive, forces))

  def pulled(self, model: Model, pulls: Pulls) -> "Smooth":
    """Return the same with adhesion actuators."""
    lifts = gravity_compensation(model, self.poses)
    actuated = actuate(model, self.poses, self.tendons, self.state, lifts, pulls)
    return replace(self, actuated=actuated, damping=_sum(self.passive_damping, actuated.damping()))


def smooth_dynamics(model: Model, state: State) -> Smooth:
  """Compute poses, velocities, inertia and all forces except constraint forces.

  MuJoCo's `mj_fwdPosition`, `mj_fwdVelocity` and `mj_fwdActuation`, without contacts and constraints; so
  adhesion is without force (`Smooth.pulled`).
  """
  p = poses(model, state.qpos, Mocap(state.mocap_pos, state.mocap_quat))
  velocity, acceleration = velocities(model, p, state.qvel)
  inertias = body_inertias(model, p)
  forms_matrix = p.program is None or inert_tendons(model) or model.integrator == "implicitfast"
  composite = composite_inertias(model, p, inertias) if forms_matrix else []
  cords = tendons(model, p, state)
  passive = passive_forces(model, state, p, velocity, cords)
  actuated = actuate(model, p, cords, state, gravity_compensation(model, p), pulls={})
  damping = _sum(passive.damping, actuated.damping())
  return Smooth(
    state=state,
    poses=p,
    inertias=inertias,
    composite=composite,
    velocity=velocity,
    acceleration=acceleration,
    tendons=cords,
    M=_inertia(model, p, inertias, composite),
    bias=bias_forces(model, p, inertias, velocity, acceleration),
    passive=passive.force,
    passive_damping=passive.damping,
    actuated=actuated,
    damping=damping,
  )


def solution(model: Model, factor: Factor, force: list[Number], left: Balance) -> list[Number]:
  """Return the acceleration [nv] by a force: where `is_refined` it is refined once by the forces `left`."""
  qacc = factor.solve(force)
  return mapped(add, qacc, factor.solve(left(qacc))) if is_refined(model) else qacc


def is_refined(model: Model) -> bool:
  """Return whether accelerations are refined by `unbalanced` forces.

  They are with light links, uneven objects or thin bodies. But Newton-Euler has the armature of tendons
  between branches too, which M leaves out.
  """
  loses_digits = has_light_links(model) or has_uneven_objects(model) or has_thin_bodies(model)
  return loses_digits and not inert_tendons(model)


def _inertia(
  model: Model, p: Poses, inertias: list[Inertia], composite: list[Inertia]
) -> SparseMatrix | TreeInertia:
  """Return M: no matrix if the program repeats, unless tendons have inertia too."""
  if p.program and not inert_tendons(model):
    return TreeInertia(model, p, inertias, [number(x) for x in model.dof_armature])
  return mass_matrix(model, p, composite)


def _sum(one: dict[At, Number], two: dict[At, Number]) -> dict[At, Number]:
  entries = dict(one)
  for at, value in two.items():
    entries[at] = entries.get(at, 0.0) + value
  return entries
