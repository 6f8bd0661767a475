"""Statements of a traced program, and how they are pruned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
  from physics.trace.trace import Program

BLOCKS = ("for", "when_any", "when_equal", "when_less")  # statements with a body
DEFINITIONS = ("op", "load", "table", "gather", "read")  # statements without side effects


class Value:
  """A name in the traced program."""

  __slots__ = ("name", "program")
  __array_ufunc__ = None  # numpy scalars leave the operator to us

  def __init__(self, program: Program, name: str) -> None:
    self.program = program
    self.name = name


@dataclass
class Statement:
  """One recorded line: `kind` says how to emit it, `result` what it defines, `args` what it reads."""

  kind: str
  op: str = ""
  result: Any = None  # a Value, if the statement defines one
  args: tuple[Any, ...] = ()
  body: list[Statement] = field(default_factory=list)


def walk(body: list[Statement]) -> Iterator[Statement]:
  """Yield all statements, those of inner blocks included, in order."""
  for statement in body:
    yield statement
    yield from walk(statement.body)


def prune(body: list[Statement]) -> set[str]:
  """Drop stores to arrays that are never loaded, then definitions without a use; return the arrays read."""
  before: set[str] | None = None
  while (read := _arrays_read(body)) != before:
    before = read
    _drop_stores(body, read)
    _drop_unused(body, set())
  return read


def _arrays_read(body: list[Statement]) -> set[str]:
  """Return the arrays that are loaded, and those that a push onto a lane list uses in any case."""
  loaded = {s.op for s in walk(body) if s.kind == "load"}
  pushes = [s.args[0] for s in walk(body) if s.kind == "push"]
  return loaded | {array.name for lanes in pushes for array in lanes.needed}


def _drop_stores(body: list[Statement], read: set[str]) -> None:
  for statement in body:
    _drop_stores(statement.body, read)
  body[:] = [s for s in body if s.kind != "store" or s.op in read]


def _drop_unused(body: list[Statement], used: set[str]) -> None:
  """Remove definitions that no later statement reads, last statement first."""
  kept = []
  for statement in reversed(body):
    _drop_unused(statement.body, used)
    if statement.kind in DEFINITIONS and statement.result.name not in used:
      continue
    used.update(_names_read(statement.args))
    kept.append(statement)
  body[:] = reversed(kept)


def _names_read(args: Sequence[object]) -> Iterator[str]:
  for arg in args:
    if isinstance(arg, Value):
      yield arg.name
    elif isinstance(arg, tuple):
      yield from _names_read(arg)
