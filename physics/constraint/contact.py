"""Contact constraints for the solver: rows, residuals, forces, curvature; costs are in `cone.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

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
from physics.constraint.cone import Cone, Growth, GrowthSum
from physics.constraint.constraint import ConstraintParams, HessianSum, contact_cone
from physics.constraint.contact_rows import ContactRows
from physics.constraint.moving import WORD_BITS, MovingPairs, common_origin
from physics.dynamics.dynamics import project
from physics.dynamics.kinematics import Poses, propagate
from physics.model.model import Model
from physics.trace.column import Column
from physics.trace.compact import CompactList, Entry, GroupList, LaneList
from physics.trace.trace import Array, Index, Mask, Number, Program, Truth, has_bit, sqrt, where

Weigh = Callable[[Entry], tuple[Truth, Number]]  # where a contact counts, and its weight there
PARAM_FIELDS = tuple(ConstraintParams.__dataclass_fields__)


def _names(prefix: str, dim: int) -> list[str]:
  return [f"{prefix}{k}" for k in range(dim)]


def _read(entry: Entry, names: Sequence[str]) -> list[Number]:
  return [entry[name] for name in names]


def _note(entry: Entry, names: Sequence[str], values: Sequence[Number]) -> None:
  for name, value in zip(names, values, strict=True):
    entry[name] = value


class Residuals:
  """The base of all contacts: a list whose entries have residuals and their rates.

  Fields of an entry, for each row by its number: `bias` is -aref; `residual` is J qacc - aref at the present
  qacc; `rate` is the rate of the residual along the direction of the line search.
  """

  model: Model
  program: Program
  found: CompactList
  cone: Cone

  @cached_property
  def sticks(self) -> bool:
    """Whether some geoms have adhesion."""
    return any(pair.adhesion for pair in self.model.pairs)

  def cone_force(self, entry: Entry) -> list[Number]:
    """Return a contact's force along its rows [dim] (MuJoCo's `efc_force`)."""
    return self.cone.force(entry, self.residuals(entry))

  def net_force(self, entry: Entry) -> list[Number]:
    """Return a contact's force along its rows [dim], less its adhesion (MuJoCo's `mj_contactForce`)."""
    normal, *friction = self.cone_force(entry)
    if self.sticks:
      normal = normal - where(*self.adhesion(entry), 0.0)
    return [normal, *friction]

  def adhesion(self, entry: Entry) -> tuple[Truth, Number]:
    """Return where a contact acts, and the force [N] with which it pulls there."""
    return entry["weight"] > 0.0, entry["adhesion"]

  def prepare_entry(self, entry: Entry, velocity: Sequence[Number]) -> None:
    """Set D and the reference terms from distance and the velocity [dim] along the rows."""
    params = ConstraintParams(*(entry[name] for name in PARAM_FIELDS))
    position = entry["distance"] - params.margin
    d = params.impedance(position)
    entry["D"] = entry["weight"] * d / (1.0 - d)
    damping = entry[self.cone.friction_damping] if self.cone.dim > 1 else 0.0
    reference = [params.reference(position, velocity[0], d), *(damping * v for v in velocity[1:])]
    if self.sticks:
      acts = entry["D"] > 0.0
      reference[0] = reference[0] - where(acts, entry["pull"] / where(acts, entry["D"], 1.0), 0.0)
    _note(entry, _names("bias", self.cone.dim), reference)

  def start_entry(self, entry: Entry, along: Sequence[Number]) -> None:
    """Store the residuals at an acceleration [dim] along the rows."""
    biases = _read(entry, _names("bias", self.cone.dim))
    _note(entry, _names("residual", self.cone.dim), [a + bias for a, bias in zip(along, biases, strict=True)])

  def aim_entry(self, entry: Entry, along: Sequence[Number]) -> None:
    """Store the rates [dim] of the residuals along the line search's direction."""
    _note(entry, _names("rate", self.cone.dim), along)

  def residuals(self, entry: Entry) -> list[Number]:
    """Read the residuals [dim]."""
    return _read(entry, _names("residual", self.cone.dim))

  def move(self, step: Number, unsolved: Mask) -> None:
    """Move the residuals by a step along the direction."""
    with self.acting(unsolved) as entry:
      moved = [r + step * rate for r, rate in zip(self.residuals(entry), self._rates(entry), strict=True)]
      _note(entry, _names("residual", self.cone.dim), moved)

  def growth(self, step: Number, searching: Mask) -> Growth:
    """Return the cost's growth over a step along the direction, from the stored residuals."""
    sums = GrowthSum(self.program)
    with self.acting(searching) as entry:
      sums.add(self.cone.growth(entry, self.residuals(entry), self._rates(entry), step))
    return sums.total()

  def count(self) -> Number:
    """Return the number of contacts per lane; dropped ones do not count."""
    count = self.program.variable(0.0)
    with self.found.each() as entry:
      count[0] = count[0] + where(entry["weight"] > 0.0, 1.0, 0.0)
    return count[0]

  @contextmanager
  def acting(self, unsolved: Mask) -> Iterator[Entry]:
    """Loop over the contacts that some unsolved lane has; the others keep their residuals."""
    with self.found.each() as entry, self.program.when_any((entry["D"] > 0.0) & unsolved):
      yield entry

  def _rates(self, entry: Entry) -> list[Number]:
    return _read(entry, _names("rate", self.cone.dim))


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
        _note(entry, ["first.x", "first.y", "first.z"], first * entry["friction"])
      self.prepare_entry(entry, self._along_rows(entry))

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
    forces = {body: Force.of(values) for body, values in sums.read()}
    return project(self.model, self.p, [forces.get(body, NO_FORCE) for body in range(self.model.nbody)])

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
      self.prepare_entry(entry, self._along(entry, qvel))

  def start(self, x: list[Number]) -> None:
    """Store the residuals at qacc = x [nv]."""
    with self.found.each() as entry:
      self.start_entry(entry, self._along(entry, x))

  def aim(self, direction: list[Number], unsolved: Mask) -> None:
    """Store the rates of the residuals along a direction [nv]."""
    with self.acting(unsolved) as entry:
      self.aim_entry(entry, self._along(entry, direction))

  def force(self, unsolved: Mask) -> list[Number]:
    """Return the contact forces J^T f [nv] at the stored residuals."""
    force = self.program.array(len(self.dofs))
    force.fill([0.0] * len(self.dofs))
    with self.acting(unsolved) as entry:
      for axis, f in enumerate(self.cone.force(entry, self.residuals(entry))):
        for k, value in enumerate(self._read_row(entry, axis)):
          force[k] = force[k] + value * f
    result: list[Number] = [0.0] * self.model.nv
    for k, dof in enumerate(self.dofs):
      result[dof] = force[k]
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

  def _along(self, entry: Entry, x: list[Number]) -> list[Number]:
    return [dot(self._read_row(entry, axis), [x[dof] for dof in self.dofs]) for axis in range(self.cone.dim)]

  def _row(self, entry: Entry, axis: int) -> Index:
    return entry.index * (self.cone.dim * len(self.dofs)) + axis * len(self.dofs)

  def _read_row(self, entry: Entry, axis: int) -> list[Number]:
    return self.rows.read(self._row(entry, axis), len(self.dofs))
