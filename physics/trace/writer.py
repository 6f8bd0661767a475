"""The base of the writers of traced programs: statements in order, and the fields that a push writes."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from physics.trace.compact import LaneList
from physics.trace.statement import BLOCKS, Statement, walk
from physics.trace.trace import Array, Program

INFIX = {
  "add": "+",
  "sub": "-",
  "mul": "*",
  "div": "/",
  "lt": "<",
  "le": "<=",
  "iadd": "+",
  "isub": "-",
  "imul": "*",
}


class Writer(ABC):
  """The writer of a program: a line or a method `emit_<kind>` for each kind of statement, and a block's end.

  A line has the places {s}, the statement, and {0}, {1}: its arguments.
  """

  LINES: ClassVar[dict[str, str]]
  closing: str

  def __init__(self, program: Program) -> None:
    self.program = program

  def block(self, body: list[Statement], indent: str) -> Iterator[str]:
    """Yield the lines of statements."""
    for statement in body:
      if line := self.LINES.get(statement.kind):
        yield indent + line.format(*map(self.value, statement.args), s=statement)
      else:
        yield from (indent + line for line in getattr(self, "emit_" + statement.kind)(statement))
      if statement.kind in BLOCKS:
        yield from self.block(statement.body, indent + "  ")
        yield indent + self.closing

  @abstractmethod
  def value(self, arg: Any) -> str:
    """Return the text of an argument: a traced value, or a constant."""

  def stored(self, push: Statement) -> list[tuple[Array, Any]]:
    """Return the fields that a push onto a lane list has to write, with values: those that are read."""
    lanes, _, names, values = push.args
    fields = [(lanes.fields[name], value) for name, value in zip(names, values, strict=True)]
    return [(array, value) for array, value in fields if is_read(self.program, array)]


def lane_lists(program: Program) -> list[LaneList]:
  """Return the lane lists of a program."""
  return [s.args[0] for s in walk(program.body) if s.kind == "clear"]


def is_read(program: Program, array: Array) -> bool:
  """Return whether a program reads an array."""
  return any(array is a for a in program.arrays)
