"""Contact constraints for the solver: rows, residuals, forces, curvature; costs are in `cone.py`."""

from collections.abc import Callable, Iterator

from physics.algebra.spatial import (
  NO_FORCE,
  ZERO,
  Force,
  Motion,
  Stiffness,
  Vector,
  total,
)
from physics.collision.geometry import default_hint, tangents
from physics.constraint.body_sums import BodySums
from physics.constraint.contact_rows import ContactRows
from physics.constraint.jacobian import FreeJacobian, jacobian_of
from physics.constraint.joint_rows import HessianSum
from physics.constraint.moving import WORD_BITS, MovingPairs, common_origin
from physics.constraint.params import contact_cone
from physics.constraint.residuals import Residuals, write_fields
from physics.dynamics.dynamics import project
from physics.dynamics.kinematics import Poses, propagate
from physics.model.model import Model
from physics.trace.column import Column
from physics.trace.compact import Entry, GroupList, LaneList
from physics.trace.each import Each, Sum, follow, places
from physics.trace.rows import filled
from physics.trace.trace import Array, Mask, Number, Truth, has_bit, sqrt, where

Weigh = Callable[[Entry], tuple[Truth, Number]]  # where a contact counts, and its weight there


class WorldContacts(Residuals):
  """Contacts of moving bodies with the world.

  Their curvature is summed per body as a 6 x 6 stiffness that acts like inertia, without Jacobian rows.
  """

  def __init__(
    self, model: Model, p: Poses, bodies: list[int], found: GroupList, velocity: list[Motion]
  ) -> None:
    self.model, self.p, self.bodies, self.found = model, p, bodies, found
    self.program, self.cone = found.program, contact_cone(model, still=True)
    self.motion: Array = self.program.array(6 * len(bodies))
    self.sums: Array = self.program.array(21 * len(bodies))  # memory that several `BodySums` use in turn
    self._prepare(velocity)

  def _prepare(self, velocity: list[Motion]) -> None:
    """Set each contact's basis, D and reference terms (MuJoCo's `mj_instantiateContact`)."""
    self._store_motion(velocity)
    with self.found.each() as entry:
      if self.cone.dim > 1:
        first, _ = tangents(Vector(*entry.vector("normal")), Vector(*entry.vector("hint")))
        write_fields(entry, ["first.x", "first.y", "first.z"], first * entry["friction"])
      self.prepare_entry(entry, self._rows(entry), self._along_rows(entry))

  def force(self, unsolved: Mask) -> list[Number]:
    """Return the contact forces J^T f [nv] at the stored residuals."""
    sums = BodySums(self.program, self.bodies, 6, self.sums)
    with self.acting(unsolved) as entry:
      sums.add(entry["body"], self._force(entry, self.cone_force).components)
    return self._project(sums)

  def along(self, x: list[Number]) -> Callable[[Entry], list[Number]]:
    """Return the function that reads J x [dim] of a contact for x [nv], up to the next call of this one."""
    self._store_motion(propagate(self.model, self.p, x))
    return self._along_rows

  def column(self, entry: Entry, row: int) -> list[Number]:
    """Return one row of a contact's Jacobian [nv]: the joint forces of a unit force along it."""
    unit = [float(k == row) for k in range(self.cone.dim)]
    force = self._rows(entry).force(unit).moved(Vector(*entry.vector("point")))
    sums = BodySums(self.program, self.bodies, 6, self.sums)
    sums.add(entry["body"], force.components)
    return self._project(sums)

  def stiffness(self, unsolved: Mask, lanes: Array | None = None) -> "BodyStiffnesses":
    """Return by body the curvature of the cost in its acceleration, at the stored residuals.

    `lanes` [bodies] receives where each body has contacts; only such bodies then have a stiffness.
    """
    sums = BodySums(self.program, self.bodies, 21, self.sums, few=lanes is not None)
    if lanes is not None:
      lanes.fill([False] * len(self.bodies))
    with self.acting(unsolved) as entry:
      sums.add(entry["body"], self._stiffness(entry).components)
      if lanes is not None:
        lanes[entry["body"]] = lanes[entry["body"]] | self.acts(entry, unsolved)
    return BodyStiffnesses(sums)

  def wrench(self, entry: Entry) -> Force:
    """Return a contact's force on the moving geom, at its point."""
    return self._rows(entry).force(self.net_force(entry))

  def origins(self) -> list[Column]:
    """Return the world position [3] of the origin that an entry's point is relative to, by its `body`."""
    return [Column(self.program, [self.p.origin[body][k] for body in self.bodies]) for k in range(3)]

  def add_body_forces(self, sums: BodySums) -> None:
    """Add each contact's force [6], about the tree origins, to the bodies of its geoms."""
    origins, to_still = self.origins(), any(self.model.body_treeid[body] < 0 for body in sums.bodies if body)
    with self.found.each() as entry:
      sums.add(sums.index(entry["geom_body"]), self._force(entry, self.net_force).components)
      if to_still:
        origin = Vector(*(column[entry["body"]] for column in origins))
        reaction = self.wrench(entry) * -1.0
        point = origin + Vector(*entry.vector("point"))
        sums.add(sums.index(entry["still_body"]), reaction.moved(point).components)

  def normals_of(self, body: int) -> tuple[Number, list[Number]]:
    """Return the number of contacts of a body, and the sum of their normals' Jacobian rows [nv]."""
    mine = Column(self.program, [1.0 if each == body else 0.0 for each in range(self.model.nbody)])
    sides = ("geom_body", "still_body")
    return self.normals(
      lambda entry: (entry["found"] * total(mine[entry[side]] for side in sides) > 0.0, 1.0)
    )

  def normals(self, weigh: Weigh) -> tuple[Number, list[Number]]:
    """Return the sum of the contacts' weights, and the weighted sum of their normals' Jacobian rows [nv]."""
    sums = BodySums(self.program, self.bodies, 7)
    with self.found.each() as entry:
      counts, weight = weigh(entry)
      with self.program.when_any(counts):
        normal = Force.at(Vector(*entry.vector("point")), Vector(*entry.vector("normal")))
        values = (1.0, *normal.components)
        sums.add(entry["body"], [where(counts, weight * value, 0.0) for value in values])
    weights = Sum(self.program)
    forces = filled(self.p.program, NO_FORCE, self.model.nbody)
    for pushed, (weight, *force) in sums.read():
      weights.add(weight)
      forces[pushed] = Force.of(force)
    return weights.total, project(self.model, self.p, forces)

  def _rows(self, entry: Entry) -> ContactRows:
    first = Vector(*entry.vector("first")) if self.cone.dim > 1 else ZERO
    return ContactRows.of(entry, first, self.cone.dim)

  def _along_rows(self, entry: Entry) -> list[Number]:
    body = Motion.of(self.motion.read(entry["body"] * 6, 6))
    return self._rows(entry).along(Motion(body.angular, body.at(Vector(*entry.vector("point")))))

  def _force(self, entry: Entry, along: Callable[[Entry], list[Number]]) -> Force:
    return self._rows(entry).force(along(entry)).moved(Vector(*entry.vector("point")))

  def _stiffness(self, entry: Entry) -> Stiffness:
    """Return the Hessian of a contact's cost in the acceleration of its body, about the tree origin."""
    rows, hessian = self._rows(entry), self.cone.hessian(entry, self.residuals(entry))
    scaled = {at: entry["D"] * value for at, value in hessian.items()}
    return Stiffness.at(Vector(*entry.vector("point")), *rows.blocks(scaled))

  def _project(self, sums: BodySums) -> list[Number]:
    """Return the joint forces [nv] of the forces on the bodies."""
    forces = filled(self.p.program, NO_FORCE, self.model.nbody)
    for body, values in sums.read():
      forces[body] = Force.of(values)
    return project(self.model, self.p, forces)

  def _store_motion(self, motion: list[Motion]) -> None:
    for i in places(self.program, range(len(self.bodies))):
      for k, value in enumerate(motion[follow(self.bodies, i)].components):
        self.motion[i * 6 + k] = value


class BodyStiffnesses:
  """Stiffness by body, of sums that are read as they are asked for."""

  def __init__(self, sums: BodySums) -> None:
    self.sums = sums

  def __getitem__(self, body: int) -> Stiffness:
    return Stiffness.of(self.sums.at(body))

  def items(self) -> Iterator[tuple[Each, Stiffness]]:
    """Yield each body with its stiffness."""
    for body, values in self.sums.read():
      yield body, Stiffness.of(values)


class MovingContacts(Residuals):
  """Contacts between moving bodies: Jacobian rows over the degrees of freedom that any such contact moves.

  They couple branches of the tree, so their Hessian enters the Newton step as a low-rank correction.
  """

  found: LaneList

  def __init__(
    self, model: Model, p: Poses, moving: MovingPairs, found: LaneList, qvel: list[Number]
  ) -> None:
    self.model, self.p, self.moving, self.found = model, p, moving, found
    self.program, self.cone = found.program, contact_cone(model, still=False)
    self.jacobian = jacobian_of(model, p, moving, found, self.cone.dim)
    self.is_pile = isinstance(self.jacobian, FreeJacobian)
    self.rank = found.capacity * self.cone.dim  # the most columns of the Hessian's root
    self._prepare(qvel)

  def _prepare(self, qvel: list[Number]) -> None:
    """Set each contact's Jacobian rows, D and reference terms (MuJoCo's `mj_instantiateContact`)."""
    along = self.along(qvel)
    with self.found.each() as entry:
      rows = self._rows(entry)
      self.jacobian.store(entry, rows)
      self.prepare_entry(entry, rows, along(entry))

  def force(self, unsolved: Mask) -> list[Number]:
    """Return the contact forces J^T f [nv] at the stored residuals."""
    sums = self.jacobian.sums()
    with self.acting(unsolved) as entry:
      self.jacobian.add(sums, entry, self.cone_force(entry), self.acts(entry, unsolved))
    return self.jacobian.joint_forces(sums)

  def along(self, x: list[Number]) -> Callable[[Entry], list[Number]]:
    """Return the function that reads J x [dim] of a contact for x [nv]."""
    return self.jacobian.along(x)

  def column(self, entry: Entry, row: int) -> list[Number]:
    """Return one row of a contact's Jacobian [nv]."""
    sums = self.jacobian.sums()
    self.jacobian.add(sums, entry, [float(k == row) for k in range(self.cone.dim)], True)
    return self.jacobian.joint_forces(sums)

  def push_hessian(self, to: HessianSum, unsolved: Mask) -> None:
    """Push the columns V [nv] of the Hessian V V^T of the edges that act at the stored residuals."""
    with self.acting(unsolved) as entry:
      scale, columns = sqrt(entry["D"]), self.cone.root(entry, self.residuals(entry))
      scaled = [[scale * value for value in column] for column in columns]
      self.jacobian.push_hessian(to, entry, scaled, self.acts(entry, unsolved))

  def wrench(self, entry: Entry) -> Force:
    """Return a contact's force on its second geom, at its point."""
    return self._rows(entry).force(self.net_force(entry))

  def add_body_forces(self, sums: BodySums) -> None:
    """Add each contact's force [6], about the tree origins, to the two bodies that own its geoms."""
    with self.found.each() as entry:
      wrench = self.wrench(entry)
      if self.program.repeats:
        self._add_to_owners(sums, entry, wrench)
      else:
        self._add_by_bits(sums, entry, wrench)

  def _add_by_bits(self, sums: BodySums, entry: Entry, wrench: Force) -> None:
    """Add a contact's force to the bodies of its geoms, body by body."""
    base = common_origin(self.model, self.p, self.moving)
    for body in self.moving.owners:
      at_body = wrench.moved(Vector(*entry.vector("point")) + (base - self.p.origin[body]))
      to, back = (self._bit(entry, name, self.moving.owners, body) for name in ("owner2", "owner1"))
      values = [where(to, value, where(back, -value, 0.0)) for value in at_body.components]
      sums.add(sums.index(body), values)

  def _add_to_owners(self, sums: BodySums, entry: Entry, wrench: Force) -> None:
    """Add a contact's force to the bodies of its geoms, each lane at its own."""
    point = Vector(*entry.vector("point")) + common_origin(self.model, self.p, self.moving)
    indices = {body: float(index) for index, body in enumerate(sums.bodies)}
    of_geom = [indices.get(int(body), 0.0) for body in self.model.geom_bodyid]
    for name, sign in (("geom1", -1.0), ("geom2", 1.0)):
      own = self.program.table(of_geom, entry[name])
      with self.program.each_value(own, entry["weight"] > 0.0) as (index, here):
        origin = self.p.origin[follow(sums.bodies, index)]
        values = (wrench.moved(point - origin) * sign).components
        sums.add(index, [where(here, value, 0.0) for value in values])

  def normals_of(self, body: int) -> tuple[Number, list[Number]]:
    """Return the number of contacts of a body, and the sum of their normals' Jacobian rows [nv]."""
    if body not in self.moving.owners:
      return 0.0, [0.0] * self.model.nv

    def weigh(entry: Entry) -> tuple[Truth, Number]:
      one, two = (self._bit(entry, name, self.moving.owners, body) for name in ("owner1", "owner2"))
      return (one | two) & (entry["found"] > 0.0), 1.0

    return self.normals(weigh)

  def normals(self, weigh: Weigh) -> tuple[Number, list[Number]]:
    """Return the sum of the contacts' weights, and the weighted sum of their normals' Jacobian rows [nv]."""
    weights, sums = self.program.variable(0.0), self.jacobian.sums()
    with self.found.each() as entry:
      counts, weight = weigh(entry)
      counted = where(counts, weight, 0.0)
      weights[0] = weights[0] + counted
      self.jacobian.add(sums, entry, [counted, *[0.0] * (self.cone.dim - 1)], counts)
    return weights[0], self.jacobian.joint_forces(sums)

  def _rows(self, entry: Entry) -> ContactRows:
    first = ZERO
    if self.cone.dim > 1:
      normal = Vector(*entry.vector("normal"))
      first = tangents(normal, default_hint(normal))[0] * entry["friction"]
    return ContactRows.of(entry, first, self.cone.dim)

  def _bit(self, entry: Entry, name: str, order: tuple[int, ...], body: int) -> Truth:
    position = order.index(body)
    return has_bit(entry[f"{name}{position // WORD_BITS}"], position % WORD_BITS)
