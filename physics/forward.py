"""Forward dynamics of one state, in MuJoCo's order: smooth part, contacts, constrained acceleration."""

import math
from dataclasses import dataclass
from functools import partial

from physics.algebra.spatial import total
from physics.constraint.adhesion import adhesion_forces, adhesion_moments
from physics.constraint.contact import MovingContacts, WorldContacts
from physics.constraint.equality import equality_rows
from physics.constraint.joint_rows import JointRows
from physics.constraint.moving import find_moving_contacts, moving_capacity, moving_pairs
from physics.constraint.rows import friction_rows, limit_rows
from physics.constraint.world import find_world_contacts, pushed_bodies, world_pairs
from physics.dynamics.articulated import welded_inertias
from physics.model.model import FEW_ITERATIONS, Model
from physics.smooth import Smooth, is_refined, smooth_dynamics
from physics.solver.newton import Bodies, Problem, Search, solve
from physics.solver.noslip import suppress_slip
from physics.solver.prediction import predict_acceleration
from physics.state.state import LARGEST_FORCE, State, is_sane
from physics.trace.each import replace
from physics.trace.trace import Array, Number, Program, where


@dataclass(frozen=True)
class Contacts:
  """The contacts of one state; None where the model has no such pairs."""

  world: WorldContacts | None
  moving: MovingContacts | None

  @property
  def dropped(self) -> Number:
    """Contacts that found no slot, per lane."""
    return total(kind.found.dropped[0] for kind in self.kinds)

  @property
  def kinds(self) -> list[WorldContacts | MovingContacts]:
    """The kinds of contact that the model has."""
    return [kind for kind in (self.world, self.moving) if kind]


@dataclass(frozen=True)
class Evaluation:
  """The results of evaluating one state, which integrators, outputs and sensors read."""

  smooth: Smooth
  contacts: Contacts
  joints: JointRows
  qacc: list[Number]
  search: Search


def forward(
  program: Program,
  model: Model,
  state: State,
  qacc: Array,
  capacity: int | None = None,
  elapsed: Number = 0.0,
) -> Evaluation:
  """Evaluate a state; `qacc` [nv] holds the last result, then the new one (MuJoCo's `mj_forward`).

  `capacity` is the number of contacts between moving bodies that an environment can hold; None: derived from
  the model; `elapsed` the time [time steps] since the last result.
  """
  smooth = smooth_dynamics(model, state)
  contacts = detect_contacts(program, model, smooth, capacity)
  if pulls := adhesion_moments(model, contacts.kinds):
    smooth = smooth.pulled(model, pulls)
  if model.passive_enabled and (stickiness := adhesion_forces(contacts.kinds)):
    smooth = smooth.stuck(stickiness)
  rows = [*equality_rows(model, smooth), *friction_rows(model, smooth), *limit_rows(model, smooth)]
  joints = JointRows(program, model.nv, rows)
  predict_acceleration(model, qacc, state.qvel, elapsed)
  search = _accelerate(program, model, smooth, contacts, joints, qacc)
  # The solver ends at once where its gradient is nan; an infinite qacc reports the failure.
  found, sane = qacc.values(), is_sane(smooth.force, LARGEST_FORCE)
  replace(qacc, lambda a: where(sane, a, math.inf), found)
  return Evaluation(smooth, contacts, joints, qacc.values(), search)


def detect_contacts(program: Program, model: Model, smooth: Smooth, capacity: int | None = None) -> Contacts:
  """Find contacts and prepare their rows (MuJoCo's `mj_collision`, `mj_makeConstraint`)."""
  p, world, moving = smooth.poses, None, None
  if world_pairs(model):
    bodies = pushed_bodies(model)
    found = find_world_contacts(program, model, p, bodies)
    world = WorldContacts(model, p, bodies, found, smooth.velocity)
  if (selected := moving_pairs(model)).pairs:
    slots = moving_capacity(model, selected) if capacity is None else capacity
    collided = find_moving_contacts(program, model, p, selected, slots)
    moving = MovingContacts(model, p, selected, collided, smooth.state.qvel)
  return Contacts(world, moving)


def _accelerate(
  program: Program, model: Model, smooth: Smooth, contacts: Contacts, joints: JointRows, qacc: Array
) -> Search:
  """Set qacc to the constrained acceleration."""
  if not joints.rows and not contacts.kinds:
    qacc.fill(smooth.unconstrained(program, model))
    return Search(program.variable(0.0), program.variable(0.0))
  stops_early = model.iterations < FEW_ITERATIONS
  unconstrained: list[Number] = [0.0] * model.nv
  if stops_early:
    unconstrained = smooth.unconstrained(program, model)
  sane = is_sane(qacc.values()) if model.warmstart_enabled else False
  replace(qacc, lambda a, cold: where(sane, a, cold), qacc.values(), unconstrained)
  bodies = Bodies(model, smooth.poses, welded_inertias(model, smooth.inertias))
  unbalanced = partial(smooth.unbalanced, model) if is_refined(model) else None
  problem = Problem(bodies, smooth.M, smooth.force, joints, contacts.world, contacts.moving, unbalanced)
  search = solve(program, problem, qacc, model.iterations, unconstrained if stops_early else None)
  if model.noslip_iterations:
    suppress_slip(program, problem, qacc)
  return search
