"""Rows: one quantity of several components for each element, in group memory."""

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any, Generic, Protocol, TypeVar, cast

from physics.trace.column import Column
from physics.trace.each import Each, passed, place, places, repeating
from physics.trace.trace import Array, Number, Program


class Quantity(Protocol):
  """A vector, rotation, motion and so on: `of` makes it of its components."""

  @property
  def components(self) -> Any:
    """The numbers."""


T = TypeVar("T", bound=Quantity)


class Rows(Generic[T]):
  """A list of quantities that loops write and read; a component that is the same constant in all folds.

  Every element is written once, before it is read; `sums` are written again and again, and fold nothing.
  """

  def __init__(self, program: Program, kind: type[T], count: int, sums: bool) -> None:
    self.program, self.kind, self.count, self.sums = program, kind, count, sums
    self.arrays: list[Array] = []
    self.known: list[list[Number | None]] = []  # constants by component and element

  def __len__(self) -> int:
    return self.count

  def __getitem__(self, at: Any) -> Any:
    if isinstance(at, slice):
      return [self[i] for i in range(*at.indices(self.count))]
    if isinstance(at, Integral):
      at = int(at)  # also one of NumPy's
      if not 0 <= at < self.count:
        raise IndexError(f"{at} is not in rows of {self.count}")
    return self.kind.of([self._read(k, at) for k in range(len(self.arrays))])  # type: ignore[attr-defined]

  def __setitem__(self, at: Each, value: T) -> None:
    at, components = int(at) if isinstance(at, Integral) else at, list(value.components)
    if not self.arrays:
      self.arrays = [self.program.array(self.count, prefix="r") for _ in components]
      self.known = [[None] * self.count for _ in components]
    for array, known, x in zip(self.arrays, self.known, components, strict=True):
      array[at] = x
      for element in passed(at) or ():
        known[element] = x if isinstance(x, float) and not self.sums else None

  def _read(self, component: int, at: Each) -> Number:
    elements = passed(at)
    only = self._only(component, range(self.count) if elements is None else elements)
    return self.arrays[component][at] if only is None else only

  def taken(self, component: int, at: Number, among: Sequence[int]) -> Number:
    """Return a component at each lane's own index."""
    only = self._only(component, among)
    return self.arrays[component].take(at) if only is None else only

  def columns(self) -> list[Column]:
    """Return the components, to be read at an index or at each lane's own."""
    found = []
    for k, array in enumerate(self.arrays):
      values = [self._read(k, i) for i in range(self.count)]
      found.append(Column(self.program, values, array))
    return found

  def _only(self, component: int, elements: Sequence[int]) -> Number | None:
    """Return the constant that a component is in all elements; None if it is none."""
    values = {self.known[component][i] for i in elements}
    return values.pop() if len(values) == 1 else None


def rows(program: Program | None, kind: type[T], values: Iterable[T] | int, sums: bool = False) -> list[T]:
  """Return a list of quantities of one kind; for loops, `Rows`. `values` are its elements, or its length.

  The type says list: stages use no more of it than `Rows` have.
  """
  if program is None:
    return cast(list[T], [None] * values) if isinstance(values, int) else list(values)
  if isinstance(values, int):
    return cast(list[T], Rows(program, kind, values, sums))
  return _copied(program, kind, values, sums)


def mapped_rows(kind: type[T], function: Callable[..., T], *operands: list[Any]) -> list[T]:
  """Return a function of each element of some lists of quantities of one length."""
  program, count = repeating(operands[0]), len(operands[0])
  result = rows(program, kind, count)
  for at in places(program, range(count)):
    result[at] = function(*(values[at] for values in operands))
  return result


def flattened(program: Program, make: Callable[[Each], Sequence[Number]], count: int) -> Any:
  """Return the components of the quantities that `make` returns for each element, one after another.

  They are an array in a program that repeats; else they are made as they are asked for.
  """
  if not (program.repeats and count):
    return (x for at in range(count) for x in make(at))
  whole = range(count)
  with program.loop(count) as turn:
    at = place(whole, turn)
    values = make(at)
    width, array = len(values), program.array(len(values) * count)
    for k, x in enumerate(values):
      array[turn * width + k] = x
  return array


def columns_of(program: Program, values: list[T]) -> list[Column]:
  """Return the components of quantities, to be read at an index or at each lane's own."""
  if repeating(values):
    return cast(Rows[T], values).columns()
  return [Column(program, column) for column in zip(*(x.components for x in values), strict=True)]


def taken(values: list[T], at: Number, among: Sequence[int] | None = None) -> T:
  """Return the element of `Rows` at each lane's own index, which is among some, by default all of them."""
  held = cast(Rows[T], values)
  elements = range(len(held)) if among is None else among
  return held.kind.of([held.taken(k, at, elements) for k in range(len(held.arrays))])  # type: ignore[attr-defined]


def filled(program: Program | None, value: T, count: int) -> list[T]:
  """Return a list of sums that begin at one value."""
  if program is None:
    return [value] * count
  result = rows(program, type(value), count, sums=True)
  for at in places(program, range(count)):
    result[at] = value
  return result


def _copied(program: Program, kind: type[T], values: Any, sums: bool) -> list[T]:
  result = Rows(program, kind, len(values), sums)
  if isinstance(values, Rows):
    for at in places(program, range(len(values))):
      result[at] = values[at]
  else:
    for i, value in enumerate(values):
      result[i] = value
  return cast(list[T], result)
