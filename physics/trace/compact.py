"""Compacted lists in group-local memory: entries are packed, and loops visit only existing ones.

A `GroupList` holds entries shared by the group: pushed once if any lane needs them, in a fixed order, with
room for every candidate that is pushed. A `LaneList` fills its slots lane by lane: slot 3 of one environment
and slot 3 of its neighbour are unrelated contacts. Its capacity is fixed. Entries that do not fit are counted
per lane. A `LanePool` packs items of all lanes, so that lanes share the work on them. A field that every push
gives the same constant is not stored: reading it gives the constant.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from physics.trace.statement import Value
from physics.trace.trace import Array, Index, Mask, Number, Program, Scalar, Truth, Word, where


class Entry:
  """One entry of a list, inside a loop over it: `entry["field"]` reads, `entry["field"] = x` writes."""

  def __init__(self, owner: "CompactList", index: Index) -> None:
    self.owner, self.index = owner, index

  def __getitem__(self, field: str) -> Any:
    constant = self.owner.constants.get(field)
    return self.owner.fields[field][self.index] if constant is None else constant

  def __setitem__(self, field: str, value: object) -> None:
    self.owner.field(field, Scalar)[self.index] = value
    self.owner.constants[field] = None

  def vector(self, field: str) -> list:
    """Read the three components of a vector field."""
    return [self[f"{field}.{axis}"] for axis in "xyz"]


def vector_fields(**vectors: Sequence[Number]) -> dict[str, Number]:
  """Return the components of vector fields as `Entry.vector` reads them."""
  return {f"{name}.{axis}": x for name, v in vectors.items() for axis, x in zip("xyz", v, strict=True)}


class CompactList:
  """The base of both lists: one array per field, with constants kept apart.

  `dropped[0]` counts per lane the entries that found no room, in the list or on the way to it.
  """

  def __init__(self, program: Program, capacity: int, share: int | None = None) -> None:
    self.program, self.capacity, self.share = program, capacity, min(share or capacity, capacity)
    self.fields: dict[str, Array] = {}
    self.constants: dict[str, Any] = {}
    self.size = program.array(1, Index, "n")
    self.dropped = program.variable(0.0)

  @contextmanager
  def each(self) -> Iterator[Entry]:
    """Loop over the entries; a slot that is empty in a lane reads as zeros there."""
    with self.program.loop(self.size[0]) as i:
      yield Entry(self, i)

  def field(self, name: str, kind: type[Value]) -> Array:
    """Return a field's array, declared at its first use."""
    if name not in self.fields:
      self.fields[name] = self.program.array(self.capacity, kind, "f", self.share)
    return self.fields[name]

  def _note(self, values: Mapping[str, object]) -> None:
    for name, value in values.items():
      constant = None if isinstance(value, Value) else value
      if self.constants.setdefault(name, constant) != constant:
        self.constants[name] = None


class GroupList(CompactList):
  """A list of entries that a lane group shares; a `push` inside a guard decides whether an entry exists.

  Of entries that `admit` sees, a lane has at most its `share`: what the list of a single lane has room for.
  """

  def __init__(self, program: Program, capacity: int, share: int | None = None) -> None:
    super().__init__(program, capacity, share)
    self.size[0] = 0
    self.held = program.variable(0.0) if self.share < capacity else None

  def admit(self, wanted: Truth) -> Truth:
    """Return the lanes that have room for an entry that they want; the others drop it."""
    if self.held is None:
      return wanted
    fits = wanted & (self.held[0] < float(self.share))
    self.dropped[0] = self.dropped[0] + where(wanted, 1.0, 0.0) - where(fits, 1.0, 0.0)
    self.held[0] = self.held[0] + where(fits, 1.0, 0.0)
    return fits

  def push(self, values: Mapping[str, object]) -> None:
    """Append an entry; integer constants are shared by the group, floats are one per lane."""
    self._note(values)
    end = self.size[0]
    for name, value in values.items():
      kind = Index if isinstance(value, int | Index) else Scalar
      self.field(name, kind)[end] = value
    self.size[0] = end + 1


class LaneList(CompactList):
  """A list with slots that are filled lane by lane; entries that find no slot are counted as dropped.

  If all slots are taken, the entry with the greatest value of the field `order` is dropped; without an order,
  the new entry is.
  """

  def __init__(self, program: Program, capacity: int, order: str | None = None) -> None:
    super().__init__(program, capacity)
    self.order = self.field(order, Scalar) if order else None
    self.name = program.name("lanes")

  @property
  def needed(self) -> list[Array]:
    """The arrays that a push uses even if nothing else reads them."""
    return [self.size, self.dropped, *([self.order] if self.order else [])]

  @property
  def arrays(self) -> list[Array]:
    """Every array that a push changes."""
    return [*self.fields.values(), self.size, self.dropped]

  def clear(self) -> None:
    """Empty all slots."""
    self.size[0] = 0
    self.program.statement("clear", args=(self,))

  def push(self, mask: Truth, values: Mapping[str, object]) -> None:
    """Append the values to the lanes where the mask holds; `Word`, `Index` and int go to a `Word` field."""
    self._note(values)
    for name, value in values.items():
      self.field(name, Word if isinstance(value, int | Index | Word) else Scalar)
    for array in self.arrays:
      array.version += 1
    found = _per_lane(self.program, mask)
    self.program.statement("push", args=(self, found, tuple(values), tuple(values.values())))


class LanePool(CompactList):
  """A list of items of all lanes, packed: a lane works on the items of any lane, next to each other.

  `capacity` is per lane. An entry of the list has an item for each lane; the last entry reads as
  zeros in lanes that have none. Items come in the order of the pushes, and within a push by lane.
  """

  def __init__(self, program: Program, capacity: int) -> None:
    super().__init__(program, capacity)
    self.items = program.array(1, Index, "n")

  @property
  def needed(self) -> list[Array]:
    """The arrays that a push uses even if nothing else reads them."""
    return [self.size, self.items]

  @property
  def arrays(self) -> list[Array]:
    """Every array that a push changes."""
    return [*self.fields.values(), self.size, self.items]

  def clear(self) -> None:
    """Remove all items."""
    self.size[0] = 0
    self.items[0] = 0

  def push(self, mask: Truth, values: Mapping[str, Number]) -> None:
    """Append an item for each lane where the mask holds, in the order of the lanes."""
    for name in values:
      self.field(name, Scalar)
    for array in self.arrays:
      array.version += 1
    found = _per_lane(self.program, mask)
    self.program.statement("pool", args=(self, found, tuple(values), tuple(values.values())))


def _per_lane(program: Program, mask: Truth) -> Mask:
  """Return a truth value per lane; one that the model alone decides is a Python bool."""
  return mask if isinstance(mask, Mask) else program.variable(mask, Mask)[0]
