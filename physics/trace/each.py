"""Repetition: a block for each of many elements, written out or as one loop over tables.

A stage says `for body in places(program, bodies)` and reads and writes lists at `body`. Without a program
that repeats, `body` is an int, and the lists are Python's. Else it is a `Place` in a loop, the lists are
arrays, and the model's facts about a body are read from a table by `entry`, `follow` and `alike`.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from physics.trace.column import Column
from physics.trace.trace import Array, Index, Integer, Number, Program, Scalar, number

Each: TypeAlias = Any  # the number of an element: an int, or a `Place` in a loop
FEWEST = 4  # elements that are worth a loop
WIDTH = 4  # sums side by side


class Place(Index):
  """An element in a loop over some: its number, and all numbers that it has in turn."""

  __slots__ = ("elements", "turn")

  def __init__(self, number: Index, elements: Sequence[int], turn: Index) -> None:
    self.program, self.name, self.block = number.program, number.name, number.block
    self.elements, self.turn = elements, turn

  def __add__(self, other: Integer) -> Index:
    if isinstance(other, int):
      return place([each + other for each in self.elements], self.turn)
    return super().__add__(other)

  __radd__ = __add__


def place(elements: Sequence[int], turn: Index) -> Each:
  """Return the element of a loop's turn; an int if it is always the same."""
  first, steps = elements[0], {b - a for a, b in pairwise(elements)}
  if steps <= {0}:
    return first
  is_even = len(steps) == 1
  number = turn * steps.pop() + first if is_even else turn.program.table(elements, turn)
  return Place(number, elements, turn)


def places(program: Program | None, elements: Sequence[int]) -> Iterator[Each]:
  """Yield the elements in turn; or, in a program that repeats, the place in a loop over them."""
  if program is None or not program.repeats or len(elements) < FEWEST:
    yield from elements
    return
  with program.loop(len(elements)) as turn:
    yield place(elements, turn)


def passed(at: Each) -> Sequence[int] | None:
  """Return the elements that a place goes through; None where they are not known."""
  if isinstance(at, Place):
    return at.elements
  return [at] if isinstance(at, int) else None


def follow(links: Sequence[int] | np.ndarray, at: Each) -> Each:
  """Return the element that an element refers to, such as a body's parent."""
  if isinstance(at, Place):
    return place([int(links[i]) for i in at.elements], at.turn)
  if isinstance(at, Index):
    return at.program.table([int(link) for link in links], at)
  return int(links[at])


def alike(facts: Sequence[Any] | np.ndarray, at: Each) -> Any:
  """Return a fact that all elements of a loop share, such as the kind of a joint."""
  return facts[at.elements[0] if isinstance(at, Place) else at]


def entry(values: Sequence[Any] | np.ndarray, at: Each) -> Any:
  """Return the number, or the row of numbers, that the model has for an element."""
  if not isinstance(at, Place):
    return number(values[at]) if np.ndim(values) == 1 else values[at]
  own = [values[i] for i in at.elements]
  if np.ndim(own[0]) == 0:
    return Column(at.program, [number(x) for x in own])[at.turn]
  return [Column(at.program, [number(x) for x in column])[at.turn] for column in zip(*own, strict=True)]


def repeating(values: object) -> Program | None:
  """Return the program with loops that compute values; None if they are a list."""
  program = getattr(values, "program", None)
  return program if program is not None and program.repeats else None


def numbers(program: Program | None, count: int) -> Any:
  """Return a list of numbers, at first zero; or, for loops, an array without values."""
  return [0.0] * count if program is None else program.array(count)


def stored(program: Program | None, values: Any) -> Any:
  """Return numbers as loops read them: an array."""
  if program is None or isinstance(values, Array):
    return values
  array = program.array(len(values))
  array.fill(values)
  return array


def indexed(program: Program | None, values: Any) -> Any:
  """Return numbers that are known before a loop as it reads them: an array, or a table of constants."""
  return values if program is None or isinstance(values, Array) else Table(program, values)


class Table:
  """Numbers that are known before a loop, to be read at places in it."""

  def __init__(self, program: Program, values: Sequence[Number]) -> None:
    self.column, self.values = Column(program, values), values

  def __getitem__(self, at: Each) -> Number:
    return self.column.chosen(at.elements, at.turn) if isinstance(at, Place) else self.values[at]


def mapped(function: Callable[..., Number], *operands: Any) -> Any:
  """Return a function of each element of some lists of one length; if one is an array, so is the result.

  If it is a constant in all elements the result is a list of it.
  """
  program = next((x.program for x in operands if isinstance(x, Array)), None)
  if program is None:
    return [function(*values) for values in _together(operands)]
  count, columns = len(operands[0]), _columns(program, operands)
  result = program.array(count)
  with program.loop(count) as i:
    value = function(*(column[i] for column in columns))
    result[i] = value
  return result if isinstance(value, Scalar) else [value] * count


def replace(array: Array, function: Callable[..., Number], *operands: Any) -> None:
  """Write a function of each element of some lists of one length, the array's among them or not."""
  if not array.program.repeats:
    array.fill(mapped(function, *operands))
    return
  columns = _columns(array.program, operands)
  with array.program.loop(len(operands[0])) as i:
    array[i] = function(*(column[i] for column in columns))


def _together(operands: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
  """Yield the elements of lists side by side, with Python's numbers in place of NumPy's."""
  return zip(*(x.tolist() if isinstance(x, np.ndarray) else x for x in operands), strict=True)


def _columns(program: Program, operands: Sequence[Any]) -> list[Any]:
  return [x if isinstance(x, Array) else Column(program, list(x)) for x in operands]


class Sum:
  """A sum, to which a block for each of some elements adds."""

  def __init__(self, program: Program | None) -> None:
    self.kept = program.variable(0.0) if program is not None and program.repeats else None
    self.known: Number = 0.0

  def add(self, term: Number) -> None:
    """Add a term."""
    if self.kept is None:
      self.known = self.known + term
    else:
      self.kept[0] = self.kept[0] + term

  @property
  def total(self) -> Number:
    """The sum so far."""
    return self.known if self.kept is None else self.kept[0]


def summed(function: Callable[..., Number], *operands: Any) -> Number:
  """Return the sum of a function of each element of some lists of one length.

  It is in order; in a loop, there are four sums, of every fourth element, so that none waits for the last.
  """
  program = next((x.program for x in operands if isinstance(x, Array)), None)
  if program is None:
    whole = Sum(None)
    for values in _together(operands):
      whole.add(function(*values))
    return whole.total
  count, columns = len(operands[0]), _columns(program, operands)
  sums = [Sum(program) for _ in range(WIDTH)]
  with program.loop(count // WIDTH) as i:
    for k, each in enumerate(sums):
      each.add(function(*(column[i * WIDTH + k] for column in columns)))
  rest = [function(*(column[at] for column in columns)) for at in range(count - count % WIDTH, count)]
  for each, term in zip(sums, rest, strict=False):
    each.add(term)
  return sums[0].total + sums[1].total + (sums[2].total + sums[3].total)


def inner(a: Any, b: Any) -> Number:
  """Return the sum of products of two lists of one length."""
  return summed(lambda x, y: x * y, a, b)


def weighted_square(values: Any, weights: Sequence[Number]) -> Number:
  """Return the sum of the squares of a list, each times its weight."""
  if isinstance(values, Array):
    return summed(lambda x, weight: x * x * weight, values, weights)
  return inner([x * x for x in values], weights)
