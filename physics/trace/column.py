"""Columns: numbers that are known before a loop and read at an index inside it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from physics.trace.trace import Array, Integer, Number, Parameter, Program, Scalar


class Column:
  """A table of constants, or group memory if some numbers are traced; equal numbers fold to one.

  Parameters of the model that are evenly spaced in memory are read from there, but for lanes that each have
  an index of their own.

  Make a column before the loop: its traced numbers are written to memory where it is made.
  """

  def __init__(self, program: Program, values: Sequence[Any], memory: Array | None = None) -> None:
    """Make a column of values, which `memory` may hold already."""
    self.program, self.values = program, list(values)
    self.stride = _stride(values)
    if memory is not None:
      self.memory = memory
    elif any(isinstance(value, Scalar) for value in values):
      self.memory = program.array(len(values))
      self.memory.fill(values)

  def __getitem__(self, index: Integer | Number) -> Any:
    """Return the number at an index, the same for all lanes or each lane's own."""
    return self.chosen(range(len(self.values)), index)

  def chosen(self, order: Sequence[int], index: Integer | Number, lane: Number | None = None) -> Any:
    """Return the number at `order[index]`, of the lane numbered `lane` if given.

    It folds where the numbers in this order do.
    """
    values = [self.values[i] for i in order]
    if isinstance(index, int):
      return values[index]
    if not any(isinstance(value, Scalar) for value in values):
      bits = all(isinstance(value, int) for value in values)
      is_own = isinstance(index, Scalar) and bits
      return (self.program.words if is_own else self.program.table)(values, index)  # type: ignore[arg-type]
    if lane is None and all(value is values[0] for value in values):
      return values[0]
    at: Any = index if order == range(len(self.values)) else self.program.table(order, index)
    if isinstance(index, Scalar):
      return self.memory.take(at, lane)
    if self.stride is None:
      return self.memory[at]
    return self.program.read_memory("parameters", at * self.stride + self.values[0].row)


def _stride(values: Sequence[Any]) -> int | None:
  """Return the distance between the rows of evenly spaced parameters; None for other values."""
  if not all(isinstance(value, Parameter) for value in values):
    return None
  steps = {b.row - a.row for a, b in pairwise(values)}
  return steps.pop() if len(steps) == 1 else None
