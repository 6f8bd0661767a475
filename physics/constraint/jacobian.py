"""Jacobians of contacts between moving bodies, over all degrees of freedom or the twelve of two free bodies.

A contact of a robot with itself, or with an object that it holds, moves many joints: its rows are over every
degree of freedom that some contact moves. In a pile of free bodies nearly all of these would vanish: there a
contact has rows over the twelve of its two bodies, which each lane reads and adds at its own place.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, cast

from physics.algebra.block_matrix import SIDE, BlockMatrix
from physics.algebra.spatial import Motion, Vector, dot
from physics.constraint.contact_rows import ContactRows
from physics.constraint.joint_rows import HessianSum
from physics.constraint.moving import WORD_BITS, MovingPairs, common_origin
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.trace.column import Column
from physics.trace.compact import Entry, LaneList
from physics.trace.each import places
from physics.trace.rows import taken
from physics.trace.trace import Array, Index, Number, Truth, has_bit, maximum, minimum, where

FEWEST = 4  # free bodies from which on rows over two bodies cost less than rows over all


def jacobian_of(model: Model, p: Poses, moving: MovingPairs, found: LaneList, dim: int) -> "Jacobian":
  """Return the Jacobian of contacts that serves a model."""
  assembled = outgrows(found.capacity * dim, model.nv)  # FreeJacobian adds to no other matrix
  kind = FreeJacobian if assembled and _is_pile(model, moving) else JointJacobian
  return kind(model, p, moving, found, dim)


def outgrows(rank: int, dofs: int) -> bool:
  """Return whether a low-rank correction may have too many columns: Newton steps then assemble the matrix."""
  return 2 * rank > dofs


def _is_pile(model: Model, moving: MovingPairs) -> bool:
  """Return whether all moving bodies are free, and enough of them collide."""
  alone = all(model.body_dofnum[body] in (0, SIDE) for body in range(model.nbody))
  free = sum(model.body_dofnum[body] == SIDE for body in range(model.nbody))
  trees = len({int(model.body_treeid[body]) for body in range(model.nbody) if model.body_dofnum[body]})
  return alone and free == trees and len(moving.bodies) >= FEWEST


class JointJacobian:
  """Rows over the degrees of freedom that any contact moves."""

  def __init__(self, model: Model, p: Poses, moving: MovingPairs, found: LaneList, dim: int) -> None:
    self.model, self.p, self.moving, self.dim, self.program = model, p, moving, dim, found.program
    self.base = common_origin(model, p, moving)
    self.dofs = [dof for dof in range(model.nv) if int(model.dof_bodyid[dof]) in moving.bodies]
    self.rows: Array = self.program.array(found.capacity * dim * len(self.dofs))

  def store(self, entry: Entry, rows: ContactRows) -> None:
    """Compute the rows of a contact."""
    point = Vector(*entry.vector("point"))
    for k, dof in enumerate(self.dofs):
      body = int(self.model.dof_bodyid[dof])
      cdof = self.p.cdof[dof]
      at_point = Motion(cdof.angular, cdof.at(point + (self.base - self.p.origin[body])))
      sign = (self._moves(entry, "gains", body), self._moves(entry, "loses", body))
      for axis, along in enumerate(rows.along(at_point)):
        self.rows[self._row(entry, axis) + k] = where(sign[0], along, where(sign[1], -along, 0.0))

  def along(self, x: Sequence[Number]) -> Callable[[Entry], list[Number]]:
    """Return the function that reads J x [dim] of a contact for x [nv]."""
    held = [x[dof] for dof in self.dofs]
    return lambda entry: [dot(self._read_row(entry, axis), held) for axis in range(self.dim)]

  def sums(self) -> Array:
    """Return a sum of joint forces, at first zero."""
    sums = self.program.array(len(self.dofs))
    sums.fill([0.0] * len(self.dofs))
    return sums

  def add(self, sums: Array, entry: Entry, forces: Sequence[Number], _lanes: Truth) -> None:
    """Add J^T f of one contact for forces f [dim] to a sum; in other lanes they are zero or do not count."""
    for axis, f in enumerate(forces):
      for k, value in enumerate(self._read_row(entry, axis)):
        sums[k] = sums[k] + value * f

  def joint_forces(self, sums: Array) -> list[Number]:
    """Return a sum as joint forces [nv]."""
    result: list[Number] = [0.0] * self.model.nv
    for k, dof in enumerate(self.dofs):
      result[dof] = sums[k]
    return result

  def push_hessian(
    self, to: HessianSum, entry: Entry, columns: Sequence[Sequence[Number]], _lanes: Truth
  ) -> None:
    """Push J^T c for columns c [dim] of a contact; in other lanes they are zero or do not count."""
    rows, joint = [self._read_row(entry, axis) for axis in range(self.dim)], []
    for column in columns:
      values = [dot(column, each) for each in zip(*rows, strict=True)]
      joint.append(dict(zip(self.dofs, values, strict=True)))
    to.push(joint)

  def _moves(self, entry: Entry, name: str, body: int) -> Truth:
    position = self.moving.bodies.index(body)
    return has_bit(entry[f"{name}{position // WORD_BITS}"], position % WORD_BITS)

  def _row(self, entry: Entry, axis: int) -> Index:
    return entry.index * (self.dim * len(self.dofs)) + axis * len(self.dofs)

  def _read_row(self, entry: Entry, axis: int) -> list[Number]:
    return self.rows.read(self._row(entry, axis), len(self.dofs))


class FreeJacobian:
  """Rows over the degrees of freedom of a contact's two bodies, where every moving body is free."""

  def __init__(self, model: Model, p: Poses, moving: MovingPairs, found: LaneList, dim: int) -> None:
    self.p, self.program, self.dim, self.nv = p, found.program, dim, model.nv
    bodies = [body for body in range(model.nbody) if model.body_dofnum[body]]
    order = {body: number for number, body in enumerate(bodies)}
    self.body_of_geom = [float(order.get(int(body), 0)) for body in model.geom_bodyid]
    self.base, self.body_ids = common_origin(model, p, moving), [float(body) for body in bodies]
    if not p.program:
      self.offsets = self._columns([self.base - p.origin[body] for body in bodies])
      cdofs = [p.cdof[k::SIDE] for k in range(SIDE)]
      self.cdofs = [self._columns([cdof.components for cdof in each]) for each in cdofs]
    self.bodies: Array = self.program.array(2 * found.capacity)  # of every contact, in their order
    self.rows: Array = self.program.array(2 * found.capacity * dim * SIDE)

  def _columns(self, vectors: Sequence[Sequence[Number]]) -> list[Column]:
    return [Column(self.program, values) for values in zip(*vectors, strict=True)]

  def store(self, entry: Entry, rows: ContactRows) -> None:
    """Compute the rows of a contact."""
    one, two = (self.program.table(self.body_of_geom, entry[name]) for name in ("geom1", "geom2"))
    forth = where(one < two, 1.0, -1.0)  # contacts push the second geom's body forth, the other back
    point = Vector(*entry.vector("point"))
    for side, (body, sign) in enumerate(((minimum(one, two), -forth), (maximum(one, two), forth))):
      self.bodies[entry.index * 2 + side] = body
      at = point + self._offset(body)
      for k in range(SIDE):
        cdof = self._cdof(k, body)
        for axis, along in enumerate(rows.along(Motion(cdof.angular, cdof.at(at)))):
          self.rows[self._row(entry, side, axis) + k] = along * sign

  def _offset(self, body: Number) -> Vector:
    """Return the reference of points relative to the origin of each lane's own body."""
    if self.p.program:
      return self.base - taken(self.p.origin, self.program.table(self.body_ids, body))
    return Vector(*(column[body] for column in self.offsets))

  def _cdof(self, k: int, body: Number) -> Motion:
    """Return the motion of one degree of freedom of each lane's own body."""
    if self.p.program:
      return taken(self.p.cdof, body * float(SIDE) + float(k), range(k, self.nv, SIDE))
    return Motion.of([column[body] for column in self.cdofs[k]])

  def along(self, x: Sequence[Number]) -> Callable[[Entry], list[Number]]:
    """Return the function that reads J x [dim] of a contact for x [nv]."""
    held = self.program.array(self.nv)
    held.fill(x)

    def read(entry: Entry) -> list[Number]:
      parts = []
      for side, body in self._sides(entry):
        part = [held.take(body * float(SIDE) + float(k)) for k in range(SIDE)]
        parts.append([dot(row, part) for row in self._read_rows(entry, side)])
      return [a + b for a, b in zip(*parts, strict=True)]

    return read

  def sums(self) -> Array:
    """Return a sum of joint forces, at first zero."""
    sums = self.program.array(self.nv)
    for at in places(self.program, range(self.nv)):
      sums[at] = 0.0
    return sums

  def add(self, sums: Array, entry: Entry, forces: Sequence[Number], lanes: Truth) -> None:
    """Add J^T f of one contact for forces f [dim] to a sum; in other lanes they are zero or do not count."""
    for side, number in self._sides(entry):
      values = [dot(forces, each) for each in zip(*self._read_rows(entry, side), strict=True)]
      with self.program.each_value(number, lanes) as (body, here):
        for k, value in enumerate(values):
          sums[body * SIDE + k] = sums[body * SIDE + k] + where(here, value, 0.0)

  def joint_forces(self, sums: Array) -> list[Number]:
    """Return a sum as joint forces [nv]."""
    return sums.values()

  def push_hessian(
    self, to: HessianSum, entry: Entry, columns: Sequence[Sequence[Number]], lanes: Truth
  ) -> None:
    """Push J^T c for columns c [dim] of a contact; in other lanes they are zero or do not count."""
    matrix = cast("BlockMatrix", to)  # of an assembled Hessian
    parts = []
    for side, _ in self._sides(entry):
      rows = zip(*self._read_rows(entry, side), strict=True)
      parts.append([[dot(column, row) for column in columns] for row in rows])
    matrix.push_pair([body for _, body in self._sides(entry)], parts, lanes)

  def _sides(self, entry: Entry) -> Iterator[tuple[int, Number]]:
    """Yield both sides of a contact, each with its body; the first one's number is less."""
    for side in range(2):
      yield side, self.bodies[entry.index * 2 + side]

  def _row(self, entry: Entry, side: int, axis: int) -> Index:
    return entry.index * (2 * self.dim * SIDE) + (side * self.dim + axis) * SIDE

  def _read_rows(self, entry: Entry, side: int) -> list[list[Number]]:
    return [self.rows.read(self._row(entry, side, axis), SIDE) for axis in range(self.dim)]


Jacobian: TypeAlias = JointJacobian | FreeJacobian  # rows of every contact's Jacobian, kept in memory
