"""Statements of a traced program, and their pruning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
  from physics.trace.trace import Program

LOOPS = ("for", "for_value")
BLOCKS = (*LOOPS, "when_any", "when_equal", "when_less")  # statements with a body
DEFINITIONS = (
  "op",
  "load",
  "take",
  "table",
  "gather",
  "read",
  "farthest",
  "fetch",
  "lane",
)  # statements without side effects
CHOICE = "where(mask, a, b) for a choice, when_any(mask) for a guarded block"  # in place of an if


def refusal(asked: str, *instead: str) -> Callable[..., NoReturn]:
  """Return a method that raises TypeError for an operation that tracing lacks, and says what to write."""

  def refuse(value: Value, *_: object) -> NoReturn:
    refused = asked.format(f"a traced {type(value).__name__}")
    raise TypeError(f"cannot {refused} before the program runs; write {', '.join(instead)}")

  return refuse


class Value:
  """A value in the traced program: a name for numbers that are known only when the program runs.

  Python code that needs the numbers earlier raises a TypeError. With Python's defaults every value would be
  true, `min(a, b)` always b, and `a == b` False. `a is b` tests whether two names are one value.
  """

  __slots__ = ("block", "name", "program")
  __array_ufunc__ = None  # NumPy's scalars then use our operators
  __hash__ = None  # type: ignore[assignment] # no == means no key of a dict; use its name as the key

  __bool__ = refusal(
    "take the truth of {}", CHOICE, "minimum and maximum for min and max, & | ~ for and, or, not"
  )
  __eq__ = __ne__ = refusal("compare {} by == or !=", CHOICE, "(a <= b) & (b <= a) for a mask")
  if not TYPE_CHECKING:  # a type checker rejects these itself
    __iter__ = refusal("iterate over {}", "program.loop(count) for a loop", CHOICE)
    __index__ = refusal(
      "take the integer in {}", "program.loop(x) for range(x), program.table(list, x) for list[x]", CHOICE
    )
    __float__ = refusal("take the float in {}", "sqrt(x) of physics.trace for math.sqrt(x) and so on", CHOICE)

  def __init__(self, program: Program, name: str) -> None:
    self.program = program
    self.name = name
    self.block = program.block  # where it is known, inner blocks included


@dataclass(eq=False)  # == would compare traced values
class Statement:
  """A recorded statement: `kind` selects its emitter; it defines `result` and reads `args`."""

  kind: str
  op: str = ""
  result: Any = None  # a Value, if the statement defines one
  args: tuple[Any, ...] = ()
  body: list[Statement] = field(default_factory=list)


def walk(body: list[Statement]) -> Iterator[Statement]:
  """Yield all statements, inner blocks included, in order."""
  for statement in body:
    yield statement
    if statement.body:
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
  read = set()
  for statement in walk(body):
    if statement.kind in ("load", "take"):
      read.add(statement.op)
    elif statement.kind in ("push", "pool"):
      read.update(array.name for array in statement.args[0].needed)
  return read


def _drop_stores(body: list[Statement], read: set[str]) -> None:
  for statement in body:
    if statement.body:
      _drop_stores(statement.body, read)
  body[:] = [s for s in body if s.kind not in ("store", "put") or s.op in read]


def _drop_unused(body: list[Statement], used: set[str]) -> None:
  """Remove definitions that no later statement reads, last statement first."""
  kept = []
  for statement in reversed(body):
    if statement.body:
      _drop_unused(statement.body, used)
    if statement.kind in DEFINITIONS and statement.result.name not in used:
      continue
    used.update(value.name for value in values_read(statement.args))
    kept.append(statement)
  body[:] = reversed(kept)


def values_read(args: Sequence[object]) -> Iterator[Value]:
  """Yield the traced values among a statement's arguments."""
  for arg in args:
    if isinstance(arg, Value):
      yield arg
    elif isinstance(arg, tuple):
      yield from values_read(arg)
