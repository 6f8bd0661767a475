"""The NumPy text of traced programs: the oracle in float64, and what float32 rounds."""

import itertools
import linecache
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from physics.trace.farthest import farthest
from physics.trace.statement import Statement, Value, walk
from physics.trace.trace import Array, Index, Mask, Program, Scalar, Word
from physics.trace.writer import INFIX, Writer, is_read, lane_lists

_NUMBERS = itertools.count(1)  # of the NumPy texts of this process


def numpy_function(program: Program) -> Callable[..., None]:
  """Compile the program for NumPy: called as f(parameters..., **arrays [row, env]), all envs one lane group.

  It computes in the precision of the arrays. Tracebacks and debuggers show its lines.
  """
  lines = [line + "\n" for line in _Numpy(program).lines()]
  source, file = "".join(lines), f"<traced program {next(_NUMBERS)}>"
  namespace: dict[str, Any] = {"np": np, "inf": np.inf, "farthest": farthest, **_tables(program)}
  exec(compile(source, file, "exec"), namespace)
  run = namespace.pop("run")  # its globals would keep it alive until the next garbage collection
  linecache.cache[file] = len(source), None, lines, file  # None: there is no file to check for changes
  # The lines live as long as the code, not the function: the frames of a traceback hold only the code.
  weakref.finalize(run.__code__, linecache.cache.pop, file, None)
  return run


def _tables(program: Program) -> dict[str, Any]:
  """Return the constant tables by name: as text, a million numbers of meshes take long to compile."""
  named = program.tables.items()
  return {name: list(row) if integral else np.array(row) for (integral, row), name in named}


class _Numpy(Writer):
  """The writer of Python text: values are arrays over environments, group memory is a list of arrays."""

  LINES: ClassVar[dict[str, str]] = {
    "load": "{s.result.name} = {s.op}[{0}]",
    "lane": "{s.result.name} = np.arange(len(full), dtype=full.dtype)",
    "read": "{s.result.name} = {s.op}[{0}].copy()",
    "for": "for {s.result.name} in range({0}, {1}):",
    "when_any": "if np.any({0}):",
    "when_equal": "if {0} == {1}:",
    "when_less": "if {0} < {1}:",
    "break_if_none": "if not np.any({0}): break",
  }
  closing = "  pass"
  OPS: ClassVar[dict[str, str]] = {
    "min": "np.minimum", "max": "np.maximum", "sqrt": "np.sqrt", "abs": "np.abs", "sin": "np.sin",
    "cos": "np.cos", "exp": "np.exp", "floor": "np.floor", "atan2": "np.arctan2", "pow": "np.power",
    "where": "np.where", "and": "np.logical_and", "or": "np.logical_or", "not": "np.logical_not",
    "is": "np.equal",
  }  # fmt: skip

  def lines(self) -> Iterator[str]:
    memories = sorted({s.op for s in walk(self.program.body) if s.kind in ("read", "write")})
    yield f"def run({', '.join([*self.program.parameters, *memories])}, **_unused):"
    yield f"  full = np.zeros_like({memories[-1]}[0])"
    for array in self.program.arrays:
      yield f"  {array.name} = {self.empty(array)}"
    for lanes in lane_lists(self.program):
      yield f"  {lanes.name} = np.zeros(full.shape, int)"
    yield from self.block(self.program.body, "  ")

  def empty(self, array: Array) -> str:
    """Return the text of an array of zeros: whole numbers for words, which have more bits than float32."""
    zero = {Index: "0", Word: "np.zeros(full.shape, int)"}.get(array.kind, "full")
    return f"[{zero}] * {array.size}"

  def lanes(self, arg: Any) -> str:
    """Return the text of a number in every lane, in the precision of the others."""
    return self.value(arg) if isinstance(arg, Value) else f"full + {self.value(arg)}"

  def value(self, arg: Any) -> str:
    if isinstance(arg, Value):
      return arg.name
    return repr(arg) if isinstance(arg, bool | int) else repr(float(arg))

  def emit_op(self, s: Statement) -> Iterator[str]:
    a = [self.value(x) for x in s.args]
    if s.op in INFIX:
      text = f"{a[0]} {INFIX[s.op]} {a[1]}"
    elif s.op == "where" and isinstance(s.result, Scalar):
      text = f"np.where({a[0]}, {self.lanes(s.args[1])}, {a[2]})"
    elif s.op == "bit":
      text = f"({a[0]}.astype(int) >> {a[1]}) & 1 == 1"
    else:
      text = f"-{a[0]}" if s.op == "neg" else f"{self.OPS[s.op]}({', '.join(a)})"
    yield f"{s.result.name} = {text}"

  def emit_table(self, s: Statement) -> Iterator[str]:
    entry = f"{s.op}[{self.value(s.args[0])}]"
    yield f"{s.result.name} = {entry if isinstance(s.result, Index) else f'np.full_like(full, {entry})'}"

  def emit_gather(self, s: Statement) -> Iterator[str]:
    index, size = s.args
    kind = "int" if isinstance(s.result, Word) else "full.dtype"
    yield f"{s.result.name} = np.asarray({s.op})[{self.whole(index, size)}].astype({kind}, copy=False)"

  def emit_farthest(self, s: Statement) -> Iterator[str]:
    tables, *asked, _ = s.args
    values = (f"full + {self.value(asked[0])}", *map(self.value, asked[1:]))
    yield f"{s.result.name} = farthest({', '.join((*tables[:5], *values))})"

  def emit_take(self, s: Statement) -> Iterator[str]:
    index, size, lane = s.args
    yield f"{s.result.name} = np.array({s.op})[{self.whole(index, size)}, {self.lane(lane)}]"

  def emit_put(self, s: Statement) -> Iterator[str]:
    index, size, value, mask, lane = s.args
    if lane is not None:
      yield f"for i in np.flatnonzero({self.value(mask)}):"
      yield f"  place, here = {self.whole(index, size)}[i], np.arange(len(full)) == {self.lane(lane)}[i]"
      yield f"  {s.op}[place] = np.where(here, (full + {self.value(value)})[i], {s.op}[place])"
      return
    yield f"places = np.where({self.value(mask)}, {self.whole(index, size)}, -1)"
    yield "for place in {*places.tolist()} - {-1}:"
    yield f"  {s.op}[place] = np.where(places == place, {self.value(value)}, {s.op}[place])"

  def lane(self, lane: Any) -> str:
    """Return the text of the lane that each lane reads from or writes to."""
    return "np.arange(len(full))" if lane is None else f"(full + {self.value(lane)}).astype(int)"

  def emit_pool(self, s: Statement) -> Iterator[str]:
    pool, mask, *_ = s.args
    items, stored = pool.items.name, self.stored(s)
    yield f"for i in np.flatnonzero({mask.name}):"
    yield f"  row, column = divmod({items}[0], len(full))"
    yield f"  {items}[0], {pool.size.name}[0] = {items}[0] + 1, row + 1"
    for array, value in stored:
      yield f"  {array.name}[row] = {array.name}[row].copy() if column else full.copy()"
      yield f"  {array.name}[row][column] = (full + {self.value(value)})[i]"

  def whole(self, index: Any, size: int) -> str:
    """Return the text of an index per lane, limited to the elements that there are."""
    return f"np.fmin(np.fmax({self.value(index)}, 0), {size - 1}).astype(int)"

  def emit_store(self, s: Statement) -> Iterator[str]:
    index, value, kind = s.args
    if kind is Index or isinstance(value, Value):
      text = self.value(value)
    else:
      text = f"full == {0 if value else 1}" if kind is Mask else f"full + {self.value(value)}"
    yield f"{s.op}[{self.value(index)}] = {text}"

  def emit_write(self, s: Statement) -> Iterator[str]:
    row, value, mask, _ = s.args
    target = f"{s.op}[{self.value(row)}]"
    yield f"{target} = np.where({self.value(mask)}, {self.value(value)}, {target})"

  def emit_for_value(self, s: Statement) -> Iterator[str]:
    number, mask = s.args
    held = f"{number.name}[np.broadcast_to({self.value(mask)}, full.shape)]"
    yield f"for {s.result.name} in np.unique({held}).astype(int).tolist():"

  def emit_clear(self, s: Statement) -> Iterator[str]:
    yield f"{s.args[0].name} = np.zeros(full.shape, int)"
    for array in s.args[0].fields.values():
      if is_read(self.program, array):
        yield f"{array.name} = {self.empty(array)}"

  def emit_push(self, s: Statement) -> Iterator[str]:
    lanes, mask, *_ = s.args
    count, dropped, capacity, stored = lanes.name, lanes.dropped.name, lanes.capacity, self.stored(s)
    yield f"over = {mask.name} & ({count} == {capacity})"
    yield f"{dropped}[0] = {dropped}[0] + over"
    yield f"fits, place = {mask.name} & ~over, {count}"
    if lanes.order:
      value = next(self.value(value) for array, value in stored if array is lanes.order)
      yield f"taken = np.stack(np.broadcast_arrays(*{lanes.order.name}))"
      yield f"fits, place = fits | over & ({value} < taken.max(0)), np.where(over, taken.argmax(0), place)"
    yield f"for slot in range({capacity} if np.any(fits) else 0):"
    yield "  here = fits & (place == slot)"
    for array, value in stored:
      yield f"  {array.name}[slot] = np.where(here, {self.value(value)}, {array.name}[slot])"
    yield f"{count} = {count} + (fits & ~over)"
    yield f"{lanes.size.name}[0] = int({count}.max())"
