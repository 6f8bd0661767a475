"""Residuals of contacts for the solver: stored for each row, moved by its steps; the base of both kinds."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from physics.constraint.cone import Cone, Growth, GrowthSum, Line
from physics.constraint.contact_rows import ContactRows
from physics.constraint.params import ConstraintParams, has_adhesion, has_unyielding
from physics.constraint.surface import sliding
from physics.model.model import Model
from physics.trace.compact import CompactList, Entry
from physics.trace.trace import Mask, Number, Program, Truth, minimum, where

PARAM_FIELDS = tuple(ConstraintParams.__dataclass_fields__)


def field_names(prefix: str, dim: int) -> list[str]:
  """Return the names of one field of every row [dim]."""
  return [f"{prefix}{k}" for k in range(dim)]


def read_fields(entry: Entry, names: Sequence[str]) -> list[Number]:
  """Read fields of an entry."""
  return [entry[name] for name in names]


def write_fields(entry: Entry, names: Sequence[str], values: Sequence[Number]) -> None:
  """Write fields of an entry."""
  for name, value in zip(names, values, strict=True):
    entry[name] = value


class Residuals:
  """The base of all contacts: a list of entries with residuals and their rates.

  Fields of an entry, for each row by its number: `bias` is -aref; `residual` is J qacc - aref at the present
  qacc; `rate` is the rate of the residual along the direction of the line search; `force` and `grip` only
  after `keep_forces`.
  """

  model: Model
  program: Program
  found: CompactList
  cone: Cone
  keeps_forces = False  # forces are stored; else the residuals give them

  def along(self, x: list[Number]) -> Callable[[Entry], list[Number]]:
    """Return the function that reads J x [dim] of a contact for x [nv], up to the next call of this one."""
    raise NotImplementedError

  @cached_property
  def sticks(self) -> bool:
    """Whether some geoms have adhesion."""
    return has_adhesion(self.model)

  def cone_force(self, entry: Entry) -> list[Number]:
    """Return a contact's force along its rows [dim] (MuJoCo's `efc_force`)."""
    if self.keeps_forces:
      return read_fields(entry, field_names("force", self.cone.dim))
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

  def prepare_entry(self, entry: Entry, rows: ContactRows, along: Sequence[Number]) -> None:
    """Set D and the reference terms from the distance and from the bodies' velocity [dim] along the rows."""
    params = ConstraintParams(*(entry[name] for name in PARAM_FIELDS))
    position = entry["distance"] - params.margin
    d = params.impedance(position)
    stiffness = entry["weight"] * d / (1.0 - d)
    entry["D"] = minimum(stiffness, entry["stiffest"]) if has_unyielding(self.model) else stiffness
    damping = entry[self.cone.friction_damping] if self.cone.dim > 1 else 0.0
    slip = [a + b for a, b in zip(along[1:], rows.along(sliding(entry))[1:], strict=True)]
    reference = [params.reference(position, along[0], d), *(damping * v for v in slip)]
    if self.sticks:
      acts = entry["D"] > 0.0
      reference[0] = reference[0] - where(acts, entry["pull"] / where(acts, entry["D"], 1.0), 0.0)
    write_fields(entry, field_names("bias", self.cone.dim), reference)

  def start(self, x: list[Number]) -> None:
    """Store the residuals at qacc = x [nv]."""
    along = self.along(x)
    with self.found.each() as entry:
      rows, biases = along(entry), read_fields(entry, field_names("bias", self.cone.dim))
      residuals = [a + bias for a, bias in zip(rows, biases, strict=True)]
      write_fields(entry, field_names("residual", self.cone.dim), residuals)

  def aim(self, direction: list[Number], unsolved: Mask) -> Line:
    """Return the line from qacc along a direction [nv]."""
    along = self.along(direction)
    with self.acting(unsolved) as entry:
      write_fields(entry, field_names("rate", self.cone.dim), along(entry))
    return Line(self._move, self._growth)

  def residuals(self, entry: Entry) -> list[Number]:
    """Read the residuals [dim]."""
    return read_fields(entry, field_names("residual", self.cone.dim))

  def keep_forces(self) -> None:
    """Store the forces at the stored residuals, and the largest friction that the normal force allows."""
    with self.found.each() as entry:
      write_fields(entry, field_names("force", self.cone.dim), self.cone_force(entry))
      write_fields(
        entry, field_names("grip", self.cone.dim)[1:], self.cone.grip(entry, self.residuals(entry))
      )
    self.keeps_forces = True

  def count(self) -> Number:
    """Return the number of contacts per lane; dropped ones do not count."""
    count = self.program.variable(0.0)
    with self.found.each() as entry:
      count[0] = count[0] + where(entry["weight"] > 0.0, 1.0, 0.0)
    return count[0]

  @contextmanager
  def acting(self, unsolved: Mask) -> Iterator[Entry]:
    """Loop over the contacts that some unsolved lane has; the residuals of others stay."""
    with self.found.each() as entry, self.program.when_any(self.acts(entry, unsolved)):
      yield entry

  def acts(self, entry: Entry, unsolved: Mask) -> Truth:
    """Return the unsolved lanes that have a contact."""
    return (entry["D"] > 0.0) & unsolved

  def _move(self, step: Number, unsolved: Mask) -> None:
    with self.acting(unsolved) as entry:
      moved = [r + step * rate for r, rate in zip(self.residuals(entry), self._rates(entry), strict=True)]
      write_fields(entry, field_names("residual", self.cone.dim), moved)

  def _growth(self, step: Number, searching: Mask) -> Growth:
    sums = GrowthSum(self.program)
    with self.acting(searching) as entry:
      sums.add(self.cone.growth(entry, self.residuals(entry), self._rates(entry), step))
    return sums.total()

  def _rates(self, entry: Entry) -> list[Number]:
    return read_fields(entry, field_names("rate", self.cone.dim))
