"""Parts of a traced program: large blocks that read few values from outside.

In C++ each becomes a function of its own: compile time grows faster than the length of a function. Its
parameters are the values, and pointers to the memory that it shares with the rest, so that the compiler knows
as much of them as before.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from physics.trace.statement import BLOCKS, LOOPS, Statement, Value, values_read, walk
from physics.trace.trace import Program

# Smaller blocks gain nothing, and some run often enough for a call to count; values are copied at each call.
FEWEST_STATEMENTS, MOST_VALUES = 900, 32


@dataclass(frozen=True)
class Part:
  """Values and memory of a block: from outside, shared with the rest of the program, or its own."""

  values: list[Value]  # that it reads, from outside
  shared: list[str]  # arrays and counters that the rest uses too
  own: list[str]  # arrays and counters that nothing else uses


def find_parts(program: Program) -> dict[Statement, Part]:
  """Return the outermost blocks within a program's loops that can be parts."""
  found = [block for statement in program.body for block in _candidates(statement.body)]
  used = {block: _memory(walk([block])) for block in found}
  parts = {}
  for block, names in used.items():
    others = _memory(_without(program.body, block))
    parts[block] = Part(_read_from_outside(block), sorted(names & others), sorted(names - others))
  return parts


def _candidates(body: list[Statement]) -> Iterator[Statement]:
  for statement in body:
    if statement.kind in BLOCKS and sum(1 for _ in walk([statement])) >= FEWEST_STATEMENTS:
      can_leave = statement.kind not in LOOPS and _leaves(statement.body)
      if not can_leave and len(_read_from_outside(statement)) <= MOST_VALUES:
        yield statement
      else:
        yield from _candidates(statement.body)


def _leaves(body: list[Statement]) -> bool:
  """Return whether a block leaves a loop that began outside of it."""
  return any(s.kind == "break_if_none" or (s.kind not in LOOPS and _leaves(s.body)) for s in body)


def _read_from_outside(block: Statement) -> list[Value]:
  inner = list(walk([block]))
  read = {value.name: value for statement in inner for value in values_read(statement.args)}
  defined = {statement.result.name for statement in inner if statement.result is not None}
  return [value for name, value in read.items() if name not in defined]


def _without(body: list[Statement], block: Statement) -> Iterator[Statement]:
  """Yield all statements outside a block."""
  for statement in body:
    if statement is not block:
      yield statement
      yield from _without(statement.body, block)


def _memory(statements: Iterator[Statement]) -> set[str]:
  """Return the names of the arrays, and of the counters of lane lists, that statements use."""
  names = set()
  for statement in statements:
    if statement.kind in {"load", "store", "take", "put"}:
      names.add(statement.op)
    elif statement.kind in {"clear", "push"}:
      lanes = statement.args[0]
      names |= {lanes.name, *(array.name for array in lanes.arrays)}
    elif statement.kind == "pool":
      names |= {array.name for array in statement.args[0].arrays}
  return names
