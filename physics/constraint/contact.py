"""Contact constraints for the solver: rows, residuals, forces, curvature; costs are in `cone.py`."""

from __future__ import annotations

from collections.abc import Callable

from physics.algebra.spatial import (
  NO_FORCE,
  ZERO,
  Force,
  Motion,
  Stiffness,
  Vector,
  dot,
  total,
)
from physics.collision.geometry import default_hint, tangents
from physics.constraint.body_sums import BodySums
from physics.constraint.constraint import HessianSum, contact_cone
from physics.constraint.contact_rows import ContactRows
from physics.constraint.moving import WORD_BITS, MovingPairs, common_origin
from physics.constraint.residuals import Residuals, write_fields
from physics.dynamics.dynamics import project
from physics.dynamics.kinematics import Poses, propagate
from physics.model.model import Model
from physics.trace.column import Column
from physics.trace.compact import Entry, GroupList, LaneList
from physics.trace.trace import Array, Index, Mask, Number, Truth, has_bit, sqrt, where

Weigh = Callable[[Entry], tuple[Truth, Number]]  # where a contact counts, and its weight there


class WorldContacts(Residuals):
  """Contacts of moving bodies with the world.

  Their curvature is summed per body as a 6 x 6 stiffness that acts like inertia, without Jacobian rows.
  """

  def __init__(self, model: Model, p: Poses, bodies: list[int], found: GroupList) -> None:
    self.model, self.p, self.bodies, self.found = model, p, bodies, found
    self.program, self.cone = found.program, contact_cone(model, still=True)
    self.motion: Array = self.program.array(6 * len(bodies))
    self.sums: Array = self.program.array(21 * len(bodies))  # memory that several `BodySums` use in turn

  def prepare(self, velocity: list[Motion]) -> None:
    """Set each contact's basis, D and reference terms (MuJoCo's `mj_instantiateContact`)."""
    self._store_motion(velocity)
    with self.found.each() as entry:
      if self.cone.dim > 1:
        first, _ = tangents(Vector(*entry.vector("normal")), Vector(*entry.vector("hint")))
        write_fields(entry, ["first.x", "first.y", "first.z"], first * entry["friction"])
      self.prepare_entry(entry, self._rows(entry), self._along_rows(entry))

  def start(self, x: list[Number]) -> None:
    """Store the residuals at qacc = x [nv]."""
    self._store_motion(propagate(self.model, self.p, x))
    with self.found.each() as entry:
      self.start_entry(entry, self._along_rows(entry))

  def aim(self, direction: list[Number], unsolved: Mask) -> None:
    """Store the rates of the residuals along a direction [nv]."""
    self._store_motion(propagate(self.model, self.p, direction))
    with self.acting(unsolved) as entry:
      self.aim_entry(entry, self._along_rows(entry))

  def force(self, unsolved: Mask) -> list[Number]:
    """Return the contact forces J^T f [nv] at the stored residuals."""
    sums = BodySums(self.program, self.bodies, 6, self.sums)
    with self.acting(unsolved) as entry:
      sums.add(entry["body"], self._force(entry, self.cone_force).components)
    return self._project(sums)

  def along(self, entry: Entry, x: list[Number]) -> list[Number]:
    """Return J x [dim] of one contact for x [nv]."""
    self._store_motion(propagate(self.model, self.p, x))
    return self._along_rows(entry)

  def column(self, entry: Entry, row: int) -> list[Number]:
    """Return one row of a contact's Jacobian [nv]: the joint forces of a unit force along it."""
    unit = [float(k == row) for k in range(self.cone.dim)]
    force = self._rows(entry).force(unit).moved(Vector(*entry.vector("point")))
    sums = BodySums(self.program, self.bodies, 6, self.sums)
    sums.add(entry["body"], force.components)
    return self._project(sums)

  def stiffness(self, unsolved: Mask) -> dict[int, Stiffness]:
    """Return by body the curvature of the cost in its acceleration, at the stored residuals."""
    sums = BodySums(self.program, self.bodies, 21, self.sums)
    with self.acting(unsolved) as entry:
      sums.add(entry["body"], self._stiffness(entry).components)
    return {body: Stiffness.of(values) for body, values in sums.read()}

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
    """Return how many contacts a body has, and the sum of their normals' Jacobian rows [nv]."""
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
    weights: Number = 0.0
    forces = [NO_FORCE] * self.model.nbody
    for pushed, (weight, *force) in sums.read():
      weights, forces[pushed] = weights + weight, Force.of(force)
    return weights, project(self.model, self.p, forces)

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
    forces = {body: Force.of(values) for body, values in sums.read()}
    return project(self.model, self.p, [forces.get(body, NO_FORCE) for body in range(self.model.nbody)])

  def _store_motion(self, motion: list[Motion]) -> None:
    for i, body in enumerate(self.bodies):
      for k, value in enumerate(motion[body].components):
        self.motion[6 * i + k] = value


class MovingContacts(Residuals):
  """Contacts between moving bodies: Jacobian rows over the degrees of freedom that any such contact moves.

  They couple branches of the tree, so their Hessian enters the Newton step as a low-rank correction.
  """

  found: LaneList

  def __init__(self, model: Model, p: Poses, moving: MovingPairs, found: LaneList) -> None:
    self.model, self.p, self.moving, self.found = model, p, moving, found
    self.program, self.cone = found.program, contact_cone(model, still=False)
    self.dofs = [dof for dof in range(model.nv) if int(model.dof_bodyid[dof]) in moving.bodies]
    self.rows: Array = self.program.array(found.capacity * self.cone.dim * len(self.dofs))
    self.rank = found.capacity * self.cone.dim  # the most columns of the Hessian's root

  def prepare(self, qvel: list[Number]) -> None:
    """Set each contact's Jacobian rows, D and reference terms (MuJoCo's `mj_instantiateContact`)."""
    base = common_origin(self.model, self.p, self.moving)
    with self.found.each() as entry:
      rows, point = self._rows(entry), Vector(*entry.vector("point"))
      for k, dof in enumerate(self.dofs):
        body = int(self.model.dof_bodyid[dof])
        cdof = self.p.cdof[dof]
        at_point = Motion(cdof.angular, cdof.at(point + (base - self.p.origin[body])))
        sign = (
          self._bit(entry, "gains", self.moving.bodies, body),
          self._bit(entry, "loses", self.moving.bodies, body),
        )
        for axis, along in enumerate(rows.along(at_point)):
          self.rows[self._row(entry, axis) + k] = where(sign[0], along, where(sign[1], -along, 0.0))
      self.prepare_entry(entry, rows, self.along(entry, qvel))

  def start(self, x: list[Number]) -> None:
    """Store the residuals at qacc = x [nv]."""
    with self.found.each() as entry:
      self.start_entry(entry, self.along(entry, x))

  def aim(self, direction: list[Number], unsolved: Mask) -> None:
    """Store the rates of the residuals along a direction [nv]."""
    with self.acting(unsolved) as entry:
      self.aim_entry(entry, self.along(entry, direction))

  def force(self, unsolved: Mask) -> list[Number]:
    """Return the contact forces J^T f [nv] at the stored residuals."""
    force = self.program.array(len(self.dofs))
    force.fill([0.0] * len(self.dofs))
    with self.acting(unsolved) as entry:
      for axis, f in enumerate(self.cone_force(entry)):
        for k, value in enumerate(self._read_row(entry, axis)):
          force[k] = force[k] + value * f
    result: list[Number] = [0.0] * self.model.nv
    for k, dof in enumerate(self.dofs):
      result[dof] = force[k]
    return result

  def along(self, entry: Entry, x: list[Number]) -> list[Number]:
    """Return J x [dim] of one contact for x [nv]."""
    return [dot(self._read_row(entry, axis), [x[dof] for dof in self.dofs]) for axis in range(self.cone.dim)]

  def column(self, entry: Entry, row: int) -> list[Number]:
    """Return one row of a contact's Jacobian [nv]."""
    result: list[Number] = [0.0] * self.model.nv
    for dof, value in zip(self.dofs, self._read_row(entry, row), strict=True):
      result[dof] = value
    return result

  def push_hessian(self, to: HessianSum, unsolved: Mask) -> None:
    """Push the columns V [nv] of the Hessian V V^T of the edges that act at the stored residuals."""
    with self.acting(unsolved) as entry:
      rows, scale = [self._read_row(entry, axis) for axis in range(self.cone.dim)], sqrt(entry["D"])
      columns = []
      for column in self.cone.root(entry, self.residuals(entry)):
        sums = [dot(column, values) for values in zip(*rows, strict=True)]
        columns.append({dof: scale * value for dof, value in zip(self.dofs, sums, strict=True)})
      to.push(columns)

  def wrench(self, entry: Entry) -> Force:
    """Return a contact's force on its second geom, at its point."""
    return self._rows(entry).force(self.net_force(entry))

  def add_body_forces(self, sums: BodySums) -> None:
    """Add each contact's force [6], about the tree origins, to the two bodies that own its geoms."""
    base = common_origin(self.model, self.p, self.moving)
    with self.found.each() as entry:
      wrench = self.wrench(entry)
      for body in self.moving.owners:
        at_body = wrench.moved(Vector(*entry.vector("point")) + (base - self.p.origin[body]))
        to, back = (self._bit(entry, name, self.moving.owners, body) for name in ("owner2", "owner1"))
        values = [where(to, value, where(back, -value, 0.0)) for value in at_body.components]
        sums.add(sums.index(body), values)

  def normals_of(self, body: int) -> tuple[Number, list[Number]]:
    """Return how many contacts a body has, and the sum of their normals' Jacobian rows [nv]."""
    if body not in self.moving.owners:
      return 0.0, [0.0] * self.model.nv

    def weigh(entry: Entry) -> tuple[Truth, Number]:
      one, two = (self._bit(entry, name, self.moving.owners, body) for name in ("owner1", "owner2"))
      return (one | two) & (entry["found"] > 0.0), 1.0

    return self.normals(weigh)

  def normals(self, weigh: Weigh) -> tuple[Number, list[Number]]:
    """Return the sum of the contacts' weights, and the weighted sum of their normals' Jacobian rows [nv]."""
    sums = self.program.array(1 + len(self.dofs))
    sums.fill([0.0] * len(sums))
    with self.found.each() as entry:
      counts, weight = weigh(entry)
      for k, value in enumerate((1.0, *self._read_row(entry, 0))):
        sums[k] = sums[k] + where(counts, weight * value, 0.0)
    weights, *along = sums.read()
    row: list[Number] = [0.0] * self.model.nv
    for dof, value in zip(self.dofs, along, strict=True):
      row[dof] = value
    return weights, row

  def _rows(self, entry: Entry) -> ContactRows:
    first = ZERO
    if self.cone.dim > 1:
      normal = Vector(*entry.vector("normal"))
      first = tangents(normal, default_hint(normal))[0] * entry["friction"]
    return ContactRows.of(entry, first, self.cone.dim)

  def _bit(self, entry: Entry, name: str, order: tuple[int, ...], body: int) -> Truth:
    position = order.index(body)
    return has_bit(entry[f"{name}{position // WORD_BITS}"], position % WORD_BITS)

  def _row(self, entry: Entry, axis: int) -> Index:
    return entry.index * (self.cone.dim * len(self.dofs)) + axis * len(self.dofs)

  def _read_row(self, entry: Entry, axis: int) -> list[Number]:
    return self.rows.read(self._row(entry, axis), len(self.dofs))
