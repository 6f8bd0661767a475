"""Derived quantities of an evaluated state: accelerations, momenta and forces of bodies, on demand.

MuJoCo gives spatial quantities of bodies about the centre of mass of their tree. Here they are about the
origin of the tree, as everywhere in the engine; outputs move them to the centre of mass.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from physics.actuator.transmission import TENDON
from physics.algebra.spatial import MINVAL, NO_FORCE, Force, Inertia, Motion, Vector, dot, vector
from physics.constraint.body_sums import BodySums
from physics.constraint.equality import attachment_forces
from physics.dynamics.dynamics import inert_tendons
from physics.dynamics.passive import spring_energy, tendon_force
from physics.dynamics.subtree import subtree_centers, subtree_sums
from physics.dynamics.tendon import tendon_acceleration
from physics.forward import Evaluation
from physics.model.model import Model
from physics.state.state import Memory
from physics.trace.each import follow, places
from physics.trace.rows import filled, mapped_rows, rows
from physics.trace.trace import Number, Program, maximum, number

T = TypeVar("T")


class OnDemand(Generic[T]):
  """A property that is computed at its first use in a block, unless an enclosing block has computed it."""

  def __init__(self, compute: Callable[["Derived"], T]) -> None:
    self.compute, self.__doc__ = compute, compute.__doc__

  def __get__(self, derived: "Derived", _owner: type) -> T:
    return derived.program.once((self, derived), lambda: self.compute(derived))


class Derived:
  """The derived quantities of one evaluated state, each computed on demand; lists are by body.

  The counters of `memory` began with the launch.
  """

  def __init__(self, program: Program, model: Model, evaluation: Evaluation, memory: Memory) -> None:
    self.program, self.model, self.evaluation, self.memory = program, model, evaluation, memory
    self.smooth, self.qacc = evaluation.smooth, evaluation.qacc
    self.state, self.poses = self.smooth.state, self.smooth.poses

  @OnDemand
  def accelerations(self) -> list[Motion]:
    """Accelerations about the tree origins, gravity included: the world accelerates upwards."""
    return self.smooth.accelerations(self.model, self.qacc)

  @OnDemand
  def unconstrained(self) -> list[Number]:
    """Acceleration without constraints (`qacc_smooth`) [nv]."""
    return self.smooth.unconstrained(self.program, self.model)

  @OnDemand
  def inertias(self) -> list[Inertia]:
    """Inertias about the tree origins."""
    return mapped_rows(Inertia, Inertia.moved, self.smooth.inertias, self.poses.reference)

  @OnDemand
  def _subtree_mass_moment(self) -> tuple[list[Number], list[Vector]]:
    """Mass [kg] and first moment [kg m] of each body's subtree, relative to the tree origin."""
    return subtree_sums(self.model, self.poses, self.inertias)

  @OnDemand
  def subtree_centers(self) -> list[Vector]:
    """Centre of mass [m] of each body's subtree, relative to the tree origin."""
    return subtree_centers(self.model, self.poses, *self._subtree_mass_moment)

  @OnDemand
  def centers(self) -> list[Vector]:
    """MuJoCo's reference point of each body's spatial quantities: the centre of mass of its tree."""
    p, found = self.poses, self.subtree_centers
    centers = rows(p.program, Vector, self.model.nbody)
    for body in places(p.program, range(self.model.nbody)):
      root = follow(self.model.body_rootid, body)
      centers[body] = found[root] + (p.origin[root] - p.origin[body])
    return centers

  @OnDemand
  def subtree_momenta(self) -> list[tuple[Vector, Vector]]:
    """Velocity [m/s] of `subtree_centers`, and angular momentum [kg m^2/s] about them (`mj_subtreeVel`)."""
    momenta = [inertia @ v for inertia, v in zip(self.inertias, self.smooth.velocity, strict=True)]
    for body in reversed(range(1, self.model.nbody)):
      parent = self.model.body_parentid[body]
      momenta[parent] = momenta[parent] + momenta[body].moved(self._shift(body))
    masses, _ = self._subtree_mass_moment
    return [
      (momentum.force * (1.0 / maximum(mass, MINVAL)), momentum.moved(-center).torque)
      for momentum, mass, center in zip(momenta, masses, self.subtree_centers, strict=True)
    ]

  @OnDemand
  def external_forces(self) -> list[Force]:
    """Forces [nbody] of contacts, connect and weld constraints, and tendons with a path, about tree origins.

    The world's is zero.
    Together with `accelerations` and `internal_forces`, this is MuJoCo's `mj_rnePostConstraint`.
    """
    model, kinds = self.model, self.evaluation.contacts.kinds
    owners = {int(model.geom_bodyid[geom]) for pair in model.pairs for geom in (pair.geom1, pair.geom2)}
    sums = BodySums(self.program, sorted({0, *owners}), width=6)
    for kind in kinds:
      kind.add_body_forces(sums)
    forces = filled(self.poses.program, NO_FORCE, model.nbody)
    for place, values in sums.read():
      forces[place] = Force.of(values)
    for body, force in attachment_forces(model, self.smooth, self.evaluation.joints):
      forces[body] = forces[body] + force
    for tendon, pulls in enumerate(self.smooth.tendons.pulls):
      for body, pull in pulls.items():
        forces[body] = forces[body] + pull * self.tendon_forces[tendon]
    forces[0] = NO_FORCE
    return forces

  @OnDemand
  def tendon_forces(self) -> list[Number]:
    """Forces [ntendon] [N] along spatial tendons: of springs, dampers, actuators, rows and armature."""
    model, smooth, rows = self.model, self.smooth, self.evaluation.joints
    forces = [tendon_force(model, smooth.state, smooth.tendons, tendon) for tendon in range(model.ntendon)]
    for actuator, force in enumerate(smooth.actuated.force):
      if model.actuator_trntype[actuator] == TENDON:
        tendon = int(model.actuator_trnid[actuator, 0])
        forces[tendon] = forces[tendon] + number(model.actuator_gear[actuator, 0]) * force
    for i, row in enumerate(rows.rows):
      for tendon, share in row.tendons.items():
        forces[tendon] = forces[tendon] + share * rows.row_force(i)
    for tendon in inert_tendons(model):
      rate = tendon_acceleration(model, self.poses, tendon, smooth.velocity, self.accelerations)
      forces[tendon] = forces[tendon] - number(model.tendon_armature[tendon]) * rate
    return forces

  @OnDemand
  def internal_forces(self) -> list[Force]:
    """Forces of the parents on each body's subtree, about `centers` (MuJoCo's `cfrc_int`).

    As in MuJoCo, the entry of the world adds forces of several trees, each about its own centre. Links that
    push each other, as they overlap by design, may do so with a million times the force that holds them: the
    sum of such forces over a subtree is exactly zero, before anything smaller is added.
    """
    moving = zip(self.inertias, self.smooth.velocity, self.accelerations, strict=True)
    needed, given = [inertia.force(v, a) for inertia, v, a in moving], list(self.external_forces)
    for body in reversed(range(1, self.model.nbody)):
      if parent := self.model.body_parentid[body]:
        for forces in (needed, given):
          forces[parent] = forces[parent] + forces[body].moved(self._shift(body))
    held = [NO_FORCE]
    for body in range(1, self.model.nbody):
      held.append((needed[body] + given[body] * -1.0).moved(-self.centers[body]))
      if not self.model.body_parentid[body]:
        held[0] = held[0] + held[body]
    return held

  @OnDemand
  def kinetic_energy(self) -> Number:
    """Kinetic energy [J] (MuJoCo's `mj_energyVel`)."""
    return 0.5 * dot(self.smooth.M @ self.state.qvel, self.state.qvel)

  @OnDemand
  def potential_energy(self) -> Number:
    """Energy [J] of weight and springs (MuJoCo's `mj_energyPos`)."""
    _, moment = self._subtree_mass_moment
    springs = spring_energy(self.model, self.state, self.smooth.tendons)
    return springs - dot(vector(self.model.gravity), moment[0])

  def _shift(self, body: int) -> Vector:
    """Return the vector from the tree origin of a body's parent to the body's own tree origin."""
    return self.poses.origin[body] - self.poses.origin[self.model.body_parentid[body]]
