"""Contacts as the solver sees them: residuals, forces, curvature.

A contact has three basis directions: its normal and two tangents scaled by friction. With a = J qacc - aref
along them, the four edges of the friction pyramid have residuals a0 +- a1 and a0 +- a2 and equal D (manual,
chapter Computation, section Contact).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from physics.collision.geometry import default_hint, tangents
from physics.collision.moving import WORD_BITS, MovingPairs, common_origin
from physics.compact import CompactList, Entry, GroupList, LaneList
from physics.constraint import Law, edge_counts, edge_forces, edge_slopes
from physics.dynamics import project
from physics.kinematics import Poses, propagate
from physics.low_rank import LowRank
from physics.model import Model
from physics.spatial import NO_FORCE, ZERO, Force, Matrix, Motion, Stiffness, Vector, cross, dot, symmetric
from physics.trace import Array, Index, Mask, Number, Program, Truth, has_bit, sqrt, where

LAW_FIELDS = tuple(Law.__dataclass_fields__)
BIASES = ("u0", "u1", "u2")  # -aref along the basis
NOTES = ("a0", "a1", "a2")  # residuals along the basis at the present qacc
RATES = ("b0", "b1", "b2")  # their rates along the direction of the line search


def prepare_entry(entry: Entry, basis_velocity: Sequence[Number]) -> None:
  """Set D and the reference terms from distance and the velocity along the basis."""
  law = Law(*(entry[name] for name in LAW_FIELDS))
  position = entry["distance"] - law.margin
  d = law.impedance(position)
  entry["D"] = entry["weight"] * d / (1.0 - d)
  entry["u0"] = law.reference(position, basis_velocity[0], d)
  entry["u1"], entry["u2"] = law.damping * basis_velocity[1], law.damping * basis_velocity[2]


def _read(entry: Entry, names: Sequence[str]) -> list[Number]:
  return [entry[name] for name in names]


def _note(entry: Entry, names: Sequence[str], values: Sequence[Number]) -> None:
  for name, value in zip(names, values, strict=True):
    entry[name] = value


class Residuals:
  """What all contacts share: a list whose entries carry residuals and their rates."""

  program: Program
  found: CompactList

  def move(self, step: Number, unsolved: Mask) -> None:
    """Move the residuals by a step along the direction."""
    with self.acting(unsolved) as entry:
      _note(
        entry, NOTES, [a + step * b for a, b in zip(_read(entry, NOTES), _read(entry, RATES), strict=True)]
      )

  def slopes(self, step: Number, unsolved: Mask) -> tuple[Number, Number]:
    """Return first and second derivative of the cost along the direction, a step from the noted residuals."""
    first, second = self.program.variable(0.0), self.program.variable(0.0)
    with self.acting(unsolved) as entry:
      rates = _read(entry, RATES)
      residuals = [a + step * b for a, b in zip(_read(entry, NOTES), rates, strict=True)]
      slope, curvature = edge_slopes(entry["D"], residuals, rates)
      first[0], second[0] = first[0] + slope, second[0] + curvature
    return first[0], second[0]

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


class WorldContacts(Residuals):
  """Contacts of moving bodies with the world.

  Their curvature is summed per body as a 6 x 6 stiffness that acts like inertia: there are no Jacobian rows.
  """

  def __init__(self, model: Model, p: Poses, bodies: list[int], found: GroupList) -> None:
    self.model, self.p, self.bodies, self.found = model, p, bodies, found
    self.program = found.program
    self.motion: Array = self.program.array(6 * len(bodies))
    self.sums: Array = self.program.array(21 * len(bodies))

  def prepare(self, velocity: list[Motion]) -> None:
    """Set each contact's basis, D and reference terms."""
    self._store_motion(velocity)
    with self.found.each() as entry:
      normal = Vector(*entry.vector("normal"))
      first, _ = tangents(normal, Vector(*entry.vector("hint")))
      _note(entry, ["first.x", "first.y", "first.z"], first * entry["friction"])
      prepare_entry(entry, self._along_basis(entry))

  def start(self, x: list[Number]) -> None:
    """Note the residuals at qacc = x."""
    self._store_motion(propagate(self.model, self.p, x))
    with self.found.each() as entry:
      _note(
        entry, NOTES, [a + u for a, u in zip(self._along_basis(entry), _read(entry, BIASES), strict=True)]
      )

  def aim(self, direction: list[Number], unsolved: Mask) -> None:
    """Note the rates of the residuals along a direction."""
    self._store_motion(propagate(self.model, self.p, direction))
    with self.acting(unsolved) as entry:
      _note(entry, RATES, self._along_basis(entry))

  def force(self, unsolved: Mask) -> list[Number]:
    """Return the contact forces J^T f [nv] at the noted residuals."""
    self._clear(6)
    with self.acting(unsolved) as entry:
      self._accumulate(entry, self._force(entry).components)
    forces = {body: Force(Vector(*s[:3]), Vector(*s[3:])) for body, s in self._sums(6)}
    return project(self.model, self.p, [forces.get(body, NO_FORCE) for body in range(self.model.nbody)])

  def stiffness(self, unsolved: Mask) -> dict[int, Stiffness]:
    """Return by body the curvature of the cost in its acceleration, at the noted residuals."""
    self._clear(21)
    with self.acting(unsolved) as entry:
      at_point = Stiffness.at(Vector(*entry.vector("point")), self._point_stiffness(entry))
      self._accumulate(entry, at_point.components)
    return {body: Stiffness.of(values) for body, values in self._sums(21)}

  def body_forces(self, body_force: Array, index: dict[int, int]) -> None:
    """Add each contact's force about its tree origin to its geom's body: six rows per entry of `index`."""
    with self.found.each() as entry:
      at = (
        self.program.table([index.get(body, 0) for body in range(self.model.nbody)], entry["geom_body"]) * 6
      )
      for k, value in enumerate(self._force(entry).components):
        body_force[at + k] = body_force[at + k] + value

  def _basis(self, entry: Entry) -> tuple[Vector, Vector, Vector]:
    normal, first = Vector(*entry.vector("normal")), Vector(*entry.vector("first"))
    return normal, first, cross(normal, first) * entry["aspect"]

  def _along_basis(self, entry: Entry) -> list[Number]:
    motion = self.motion.read(entry["body"] * 6, 6)
    at_point = Motion(Vector(*motion[:3]), Vector(*motion[3:])).at(Vector(*entry.vector("point")))
    return [dot(axis, at_point) for axis in self._basis(entry)]

  def _force(self, entry: Entry) -> Force:
    force = ZERO
    for axis, f in zip(self._basis(entry), edge_forces(entry["D"], _read(entry, NOTES)), strict=True):
      force = force + axis * f
    return Force.at(Vector(*entry.vector("point")), force)

  def _point_stiffness(self, entry: Entry) -> Matrix:
    """Return the 3 x 3 Hessian of a contact's cost in the acceleration of its point."""
    nn, n1, n2, one, two = (entry["D"] * count for count in edge_counts(_read(entry, NOTES)))
    e0, e1, e2 = self._basis(entry)
    c0, c1, c2 = e0 * nn + e1 * n1 + e2 * n2, e0 * n1 + e1 * one, e0 * n2 + e2 * two
    six = [
      c0[i] * e0[j] + c1[i] * e1[j] + c2[i] * e2[j]
      for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    ]
    return symmetric(*six)

  def _store_motion(self, motion: list[Motion]) -> None:
    for i, body in enumerate(self.bodies):
      for k, value in enumerate(motion[body].components):
        self.motion[6 * i + k] = value

  def _clear(self, width: int) -> None:
    self.sums.fill([0.0] * (width * len(self.bodies)))
    self.width = width

  def _accumulate(self, entry: Entry, values: Sequence[Number]) -> None:
    at = entry["body"] * self.width
    for k, value in enumerate(values):
      self.sums[at + k] = self.sums[at + k] + value

  def _sums(self, width: int) -> list[tuple[int, list[Number]]]:
    return [(body, self.sums.read(width * i, width)) for i, body in enumerate(self.bodies)]


class MovingContacts(Residuals):
  """Contacts between moving bodies: Jacobian rows over the degrees of freedom that any such contact moves.

  They couple branches of the tree, so their Hessian enters the Newton step as a low-rank correction.
  """

  found: LaneList

  def __init__(self, model: Model, p: Poses, moving: MovingPairs, found: LaneList) -> None:
    self.model, self.p, self.moving, self.found = model, p, moving, found
    self.program = found.program
    self.dofs = [dof for dof in range(model.nv) if int(model.dof_bodyid[dof]) in moving.bodies]
    self.axes = 3 if moving.friction else 1
    self.rows: Array = self.program.array(found.capacity * self.axes * len(self.dofs))
    self.rank = found.capacity * self.axes  # columns of the Hessian's root at the most

  def prepare(self, qvel: list[Number]) -> None:
    """Set each contact's Jacobian rows, D and reference terms."""
    base = common_origin(self.model, self.p, self.moving)
    with self.found.each() as entry:
      basis, point = self._basis(entry), Vector(*entry.vector("point"))
      for k, dof in enumerate(self.dofs):
        body = int(self.model.dof_bodyid[dof])
        at_point = self.p.cdof[dof].at(point + (base - self.p.origin[body]))
        sign = (
          self._bit(entry, "gains", self.moving.bodies, body),
          self._bit(entry, "loses", self.moving.bodies, body),
        )
        for axis, direction in enumerate(basis):
          along = dot(direction, at_point)
          self.rows[self._row(entry, axis) + k] = where(sign[0], along, where(sign[1], -along, 0.0))
      prepare_entry(entry, self._along_rows(entry, qvel))

  def start(self, x: list[Number]) -> None:
    """Note the residuals at qacc = x."""
    with self.found.each() as entry:
      _note(
        entry, NOTES, [a + u for a, u in zip(self._along_rows(entry, x), _read(entry, BIASES), strict=True)]
      )

  def aim(self, direction: list[Number], unsolved: Mask) -> None:
    """Note the rates of the residuals along a direction."""
    with self.acting(unsolved) as entry:
      _note(entry, RATES, self._along_rows(entry, direction))

  def force(self, unsolved: Mask) -> list[Number]:
    """Return the contact forces J^T f [nv] at the noted residuals."""
    force = self.program.array(len(self.dofs))
    force.fill([0.0] * len(self.dofs))
    with self.acting(unsolved) as entry:
      for axis, f in zip(range(self.axes), edge_forces(entry["D"], _read(entry, NOTES)), strict=False):
        for k, value in enumerate(self._read_row(entry, axis)):
          force[k] = force[k] + value * f
    result: list[Number] = [0.0] * self.model.nv
    for k, dof in enumerate(self.dofs):
      result[dof] = force[k]
    return result

  def push_hessian(self, correction: LowRank, unsolved: Mask) -> None:
    """Push the columns V of the Hessian V V^T of the edges that act at the noted residuals."""
    with self.acting(unsolved) as entry:
      for column in self._hessian_root(entry):
        correction.push(dict(zip(self.dofs, column, strict=True)))

  def body_forces(self, body_force: Array, index: dict[int, int]) -> None:
    """Add each contact's force about the tree origins to the two bodies that own its geoms."""
    base = common_origin(self.model, self.p, self.moving)
    with self.found.each() as entry:
      force = ZERO
      for axis, f in zip(self._basis(entry), edge_forces(entry["D"], _read(entry, NOTES)), strict=False):
        force = force + axis * f
      for body in (b for b in self.moving.owners if b in index):
        at_body = Force.at(Vector(*entry.vector("point")) + (base - self.p.origin[body]), force)
        to, back = (self._bit(entry, name, self.moving.owners, body) for name in ("owner2", "owner1"))
        for k, value in enumerate(at_body.components):
          at = 6 * index[body] + k
          body_force[at] = body_force[at] + where(to, value, where(back, -value, 0.0))

  def _basis(self, entry: Entry) -> tuple[Vector, ...]:
    normal = Vector(*entry.vector("normal"))
    if self.axes == 1:
      return (normal,)
    first, second = tangents(normal, default_hint(normal))
    return normal, first * entry["friction"], second * (entry["friction"] * entry["aspect"])

  def _hessian_root(self, entry: Entry) -> list[list[Number]]:
    """Return columns V [dofs] with V V^T = J^T D J: the Cholesky factor of the edge counts, times sqrt(D).

    The counts are small integers, so that a pivot below 1/100 is a rounding residue of zero.
    """
    nn, n1, n2, one, two = edge_counts(_read(entry, NOTES))
    scale = sqrt(entry["D"])
    if self.axes == 1:
      factor = scale * sqrt(nn)
      return [[factor * row for row in self._read_row(entry, 0)]]
    per0 = _inverse_root(nn)
    l10, l20 = n1 * per0, n2 * per0
    per1 = _inverse_root(one - l10 * l10)
    l21 = -(l20 * l10) * per1
    left = two - l20 * l20 - l21 * l21
    diagonal = (nn * per0, (one - l10 * l10) * per1, left * _inverse_root(left))
    j0, j1, j2 = (self._read_row(entry, axis) for axis in range(3))
    first = [scale * (diagonal[0] * a + l10 * b + l20 * c) for a, b, c in zip(j0, j1, j2, strict=True)]
    second = [scale * (diagonal[1] * b + l21 * c) for b, c in zip(j1, j2, strict=True)]
    return [first, second, [scale * diagonal[2] * c for c in j2]]

  def _bit(self, entry: Entry, name: str, order: tuple[int, ...], body: int) -> Truth:
    position = order.index(body)
    return has_bit(entry[f"{name}{position // WORD_BITS}"], position % WORD_BITS)

  def _along_rows(self, entry: Entry, x: list[Number]) -> list[Number]:
    along = [dot(self._read_row(entry, axis), [x[dof] for dof in self.dofs]) for axis in range(self.axes)]
    return along + [0.0] * (3 - self.axes)

  def _row(self, entry: Entry, axis: int) -> Index:
    return entry.index * (self.axes * len(self.dofs)) + axis * len(self.dofs)

  def _read_row(self, entry: Entry, axis: int) -> list[Number]:
    return self.rows.read(self._row(entry, axis), len(self.dofs))


def _inverse_root(pivot: Number) -> Number:
  """Return 1 / sqrt of a pivot, zero for a vanishing one."""
  vanishes = pivot < 0.01
  return where(vanishes, 0.0, 1.0 / sqrt(where(vanishes, 1.0, pivot)))
