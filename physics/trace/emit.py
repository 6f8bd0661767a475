"""Code writers for traced programs: C++ for Warp (lanes on a CPU, scalar on CUDA) and NumPy.

The C++ body goes into one `wp.func_native`, called by a kernel of a few parameters. The text depends on the
program alone, byte for byte, so that Warp's kernel cache finds it again in the next process.
"""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from physics.trace.compact import LaneList
from physics.trace.parts import Part, find_parts
from physics.trace.preamble import preamble
from physics.trace.statement import BLOCKS, Statement, Value, walk
from physics.trace.trace import Array, Index, Mask, Program, Scalar, Word

_CTYPE = {Scalar: "T", Mask: "M", Word: "W", Index: "int"}
_NUMBERS = itertools.count(1)  # of the NumPy texts of this process
_INFIX = {
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


def native_source(program: Program, lanes: int, unroll: bool = True) -> str:
  """Return the body of a native function of (env, parameters..., arrays...) for `lanes` environments at once.

  Without `unroll`, the compiler does not unroll the loops of one environment's text.
  """
  writer = _Native(program, rolled=lanes == 1 and not unroll, parts=find_parts(program) if lanes > 1 else {})
  return preamble(lanes) + "\n".join(writer.lines()) + "\n"


def array_bytes(program: Program, lanes: int) -> int:
  """Return the size [bytes] of a program's arrays in `native_source`: at most 4 per lane and element."""
  return sum(4 * array.size * (1 if array.kind is Index else lanes) for array in program.arrays)


def numpy_function(program: Program) -> Callable[..., None]:
  """Compile the program for NumPy: called as f(parameters..., **arrays [row, env]), all envs one lane group.

  It computes in the precision of the arrays. Tracebacks and debuggers show its lines.
  """
  lines = [line + "\n" for line in _Numpy(program).lines()]
  source, file = "".join(lines), f"<traced program {next(_NUMBERS)}>"
  namespace: dict[str, Any] = {"np": np, "inf": np.inf, **_tables(program)}
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


class _Writer:
  """The writer of a program: a method `emit_<kind>` for each kind of statement, and how a block closes."""

  closing: str

  def __init__(self, program: Program) -> None:
    self.program = program

  def block(self, body: list[Statement], indent: str) -> Iterator[str]:
    for statement in body:
      yield from (indent + line for line in getattr(self, "emit_" + statement.kind)(statement))
      if statement.kind in BLOCKS:
        yield from self.block(statement.body, indent + "  ")
        yield indent + self.closing

  def stored(self, push: Statement) -> list[tuple[Array, Any]]:
    """Return the fields that a push onto a lane list has to write, with values: those that are read."""
    lanes, _, names, values = push.args
    fields = [(lanes.fields[name], value) for name, value in zip(names, values, strict=True)]
    return [(array, value) for array, value in fields if _is_read(self.program, array)]


class _Native(_Writer):
  """The writer of C++ text, with loops kept rolled or left to the compiler, and some blocks as functions."""

  closing = "}"

  def __init__(self, program: Program, rolled: bool, parts: dict[Statement, Part]) -> None:
    super().__init__(program)
    self.before_loop = ["#pragma unroll 1"] if rolled else []
    self.parts = parts
    self.memory = {array.name: (_CTYPE[array.kind], str(array.size)) for array in program.arrays}
    self.memory |= {lanes.name: ("int", "LANES") for lanes in _lane_lists(program)}

  def lines(self) -> Iterator[str]:
    for (integral, entries), name in self.program.tables.items():
      text = ", ".join(map(str, entries) if integral else _floats(entries))
      yield f"static const {'int' if integral else 'float'} {name}[{len(entries)}] = {{{text}}};"
    owned = {name for part in self.parts.values() for name in part.own}
    yield from self.declarations(name for name in self.memory if name not in owned)
    yield from self.block(self.program.body, "")

  def declarations(self, names: Iterable[str]) -> Iterator[str]:
    """Yield the declarations of memory; what is never read has none."""
    for name in names:
      if name in self.memory:
        ctype, size = self.memory[name]
        yield f"{ctype} {name}[{size}];"

  def block(self, body: list[Statement], indent: str) -> Iterator[str]:
    for statement in body:
      part = self.parts.get(statement)
      if part is None:
        yield from super().block([statement], indent)
        continue
      shared = [name for name in part.shared if name in self.memory]
      parameters = [f"const {_ctype(value)} {value.name}" for value in part.values]
      parameters += [f"{self.memory[name][0]}* __restrict {name}" for name in shared]
      yield f"{indent}[&]({', '.join(parameters)}) __attribute__((noinline)) {{"
      yield from (indent + line for line in self.declarations(part.own))
      yield from super().block([statement], indent)
      yield f"{indent}}}({', '.join([*(value.name for value in part.values), *shared])});"

  def value(self, arg: Any) -> str:
    if isinstance(arg, Value):
      return arg.name
    if isinstance(arg, bool):
      return "ALL" if arg else "not_(ALL)"
    return str(arg) if isinstance(arg, int) else f"F({_float(arg)})"

  def emit_op(self, s: Statement) -> Iterator[str]:
    integral = s.op in ("bit", "iadd", "isub", "imul")
    a = [self.value(x if integral else _real(x)) for x in s.args]
    if s.op in _INFIX:
      text = f"{a[0]} {_INFIX[s.op]} {a[1]}"
    else:
      text = f"-{a[0]}" if s.op == "neg" else f"{s.op}_({', '.join(a)})"
    yield f"const {_CTYPE[type(s.result)]} {s.result.name} = {text};"

  def emit_load(self, s: Statement) -> Iterator[str]:
    yield f"const {_CTYPE[type(s.result)]} {s.result.name} = {s.op}[{self.value(s.args[0])}];"

  def emit_table(self, s: Statement) -> Iterator[str]:
    entry = f"{s.op}[{self.value(s.args[0])}]"
    if isinstance(s.result, Index):
      yield f"const int {s.result.name} = {entry};"
    else:
      yield f"const T {s.result.name} = F({entry});"

  def emit_gather(self, s: Statement) -> Iterator[str]:
    (index, size), ctype = s.args, _CTYPE[type(s.result)]
    gather = "gather_words_" if isinstance(s.result, Word) else "gather_"
    yield f"const {ctype} {s.result.name} = {gather}({s.op}, {size}, {self.value(index)});"

  def emit_take(self, s: Statement) -> Iterator[str]:
    index, size = s.args
    yield f"const T {s.result.name} = take_({s.op}, {size}, {self.value(_real(index))});"

  def emit_put(self, s: Statement) -> Iterator[str]:
    index, size, value, mask = s.args
    arguments = (str(size), *(self.value(_real(x)) for x in (index, value)), self.value(mask))
    yield f"put_({s.op}, {', '.join(arguments)});"

  def emit_store(self, s: Statement) -> Iterator[str]:
    index, value, kind = s.args
    yield f"{s.op}[{self.value(index)}] = {self.value(_real(value) if kind is Scalar else value)};"

  def emit_read(self, s: Statement) -> Iterator[str]:
    yield f"const T {s.result.name} = read_({s.op}, {self.value(s.args[0])});"

  def emit_write(self, s: Statement) -> Iterator[str]:
    row, value, mask, integer = s.args
    arguments = (s.op, self.value(row), self.value(_real(value)), self.value(mask))
    yield f"write_{'int_' if integer else ''}({', '.join(arguments)});"

  def emit_for(self, s: Statement) -> Iterator[str]:
    i, (start, count) = s.result.name, s.args
    yield from self.before_loop
    yield f"for (int {i} = {self.value(start)}; {i} < {self.value(count)}; ++{i}) {{"

  def emit_for_value(self, s: Statement) -> Iterator[str]:
    i, (number, mask) = s.result.name, s.args
    yield f"for (unsigned left = lanes_({self.value(mask)}); left;) {{"
    yield f"  const int {i} = index_({number.name}, lowest_(left));"
    yield f"  left &= (left - 1) & ~lanes_(is_({number.name}, {i}));"

  def emit_when_any(self, s: Statement) -> Iterator[str]:
    yield f"if (any_({self.value(s.args[0])})) {{"

  def emit_when_equal(self, s: Statement) -> Iterator[str]:
    yield f"if ({self.value(s.args[0])} == {self.value(s.args[1])}) {{"

  def emit_when_less(self, s: Statement) -> Iterator[str]:
    yield f"if ({self.value(s.args[0])} < {self.value(s.args[1])}) {{"

  def emit_break_if_none(self, s: Statement) -> Iterator[str]:
    yield f"if (!any_({self.value(s.args[0])})) break;"

  def emit_clear(self, s: Statement) -> Iterator[str]:
    yield f"for (int l = 0; l < LANES; ++l) {s.args[0].name}[l] = 0;"

  def emit_push(self, s: Statement) -> Iterator[str]:
    lanes, mask, *_ = s.args
    stored = self.stored(s)
    yield "{"
    own = [array.kind is Scalar or isinstance(value, Word) for array, value in stored]
    for i, (array, value) in enumerate(stored):
      if own[i]:
        yield f"{_CTYPE[array.kind]} {lanes.name}_{i} = {self.value(_real(value))};"
    size, dropped = lanes.size.name, lanes.dropped.name
    yield f"for (unsigned left = lanes_({mask.name}); left; left &= left - 1) {{"
    yield "  const int l = lowest_(left);"
    yield f"  int slot = {lanes.name}[l];"
    yield f"  if (slot == {lanes.capacity}) {{ lane_({dropped}[0], l) += 1.0f;"
    if lanes.order:
      order = lanes.order.name
      new = next(i for i, (array, _) in enumerate(stored) if array is lanes.order)
      yield "    slot = 0;"
      yield from self.before_loop
      yield f"    for (int s = 1; s < {lanes.capacity}; ++s)"
      yield f"      if (lane_({order}[s], l) > lane_({order}[slot], l)) slot = s;"
      yield f"    if (!(lane_({lanes.name}_{new}, l) < lane_({order}[slot], l))) continue;"
    else:
      yield "    continue;"
    yield "  }"
    yield f"  if (slot == {size}[0]) {{ ++{size}[0];"
    for array in (a for a in lanes.fields.values() if _is_read(self.program, a)):
      yield f"    {array.name}[slot] = {'F(0.0f)' if array.kind is Scalar else 'W(0)'};"
    yield "  }"
    for i, (array, value) in enumerate(stored):
      lane = "lane_" if array.kind is Scalar else "word_"
      source = f"{lane}({lanes.name}_{i}, l)" if own[i] else self.value(value)
      yield f"  {lane}({array.name}[slot], l) = {source};"
    yield f"  if (slot == {lanes.name}[l]) ++{lanes.name}[l];"
    yield "} }"


class _Numpy(_Writer):
  """The writer of Python text: values are arrays over environments, group memory is a list of arrays."""

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
      yield f"  {array.name} = [{'0' if array.kind is Index else 'full'}] * {array.size}"
    for lanes in _lane_lists(self.program):
      yield f"  {lanes.name} = np.zeros(full.shape, int)"
    yield from self.block(self.program.body, "  ")

  def value(self, arg: Any) -> str:
    if isinstance(arg, Value):
      return arg.name
    return repr(arg) if isinstance(arg, bool | int) else repr(float(arg))

  def emit_op(self, s: Statement) -> Iterator[str]:
    a = [self.value(x) for x in s.args]
    if s.op in _INFIX:
      text = f"{a[0]} {_INFIX[s.op]} {a[1]}"
    elif s.op == "bit":
      text = f"({a[0]}.astype(int) >> {a[1]}) & 1 == 1"
    else:
      text = f"-{a[0]}" if s.op == "neg" else f"{self.OPS[s.op]}({', '.join(a)})"
    yield f"{s.result.name} = {text}"

  def emit_load(self, s: Statement) -> Iterator[str]:
    yield f"{s.result.name} = {s.op}[{self.value(s.args[0])}]"

  def emit_table(self, s: Statement) -> Iterator[str]:
    entry = f"{s.op}[{self.value(s.args[0])}]"
    yield f"{s.result.name} = {entry if isinstance(s.result, Index) else f'full + {entry}'}"

  def emit_gather(self, s: Statement) -> Iterator[str]:
    index, size = s.args
    yield f"{s.result.name} = np.asarray({s.op})[{self.whole(index, size)}]"

  def emit_take(self, s: Statement) -> Iterator[str]:
    index, size = s.args
    yield f"{s.result.name} = np.array({s.op})[{self.whole(index, size)}, np.arange(len(full))]"

  def emit_put(self, s: Statement) -> Iterator[str]:
    index, size, value, mask = s.args
    yield f"places = np.where({self.value(mask)}, {self.whole(index, size)}, -1)"
    yield "for place in {*places.tolist()} - {-1}:"
    yield f"  {s.op}[place] = np.where(places == place, {self.value(value)}, {s.op}[place])"

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

  def emit_read(self, s: Statement) -> Iterator[str]:
    yield f"{s.result.name} = {s.op}[{self.value(s.args[0])}].copy()"

  def emit_write(self, s: Statement) -> Iterator[str]:
    row, value, mask, _ = s.args
    target = f"{s.op}[{self.value(row)}]"
    yield f"{target} = np.where({self.value(mask)}, {self.value(value)}, {target})"

  def emit_for(self, s: Statement) -> Iterator[str]:
    yield f"for {s.result.name} in range({self.value(s.args[0])}, {self.value(s.args[1])}):"

  def emit_for_value(self, s: Statement) -> Iterator[str]:
    number, mask = s.args
    held = f"{number.name}[np.broadcast_to({self.value(mask)}, full.shape)]"
    yield f"for {s.result.name} in np.unique({held}).astype(int).tolist():"

  def emit_when_any(self, s: Statement) -> Iterator[str]:
    yield f"if np.any({self.value(s.args[0])}):"

  def emit_when_equal(self, s: Statement) -> Iterator[str]:
    yield f"if {self.value(s.args[0])} == {self.value(s.args[1])}:"

  def emit_when_less(self, s: Statement) -> Iterator[str]:
    yield f"if {self.value(s.args[0])} < {self.value(s.args[1])}:"

  def emit_break_if_none(self, s: Statement) -> Iterator[str]:
    yield f"if not np.any({self.value(s.args[0])}): break"

  def emit_clear(self, s: Statement) -> Iterator[str]:
    yield f"{s.args[0].name} = np.zeros(full.shape, int)"
    for array in s.args[0].fields.values():
      if _is_read(self.program, array):
        yield f"{array.name} = [full] * {array.size}"

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


def _ctype(value: Value) -> str:
  return next(ctype for kind, ctype in _CTYPE.items() if isinstance(value, kind))


def _lane_lists(program: Program) -> list[LaneList]:
  return [s.args[0] for s in walk(program.body) if s.kind == "clear"]


def _is_read(program: Program, array: Array) -> bool:
  return any(array is a for a in program.arrays)


def _real(value: object) -> object:
  return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _float(value: float) -> str:
  return _floats([value])[0]


def _floats(values: Sequence[float]) -> list[str]:
  """Return the shortest literals of float32 numbers; numbers beyond their range are clipped."""
  largest = np.finfo(np.float32).max
  texts = map(str, np.clip(np.array(values, float), -largest, largest).astype(np.float32))
  return [f"{text}f" if "." in text or "e" in text else f"{text}.0f" for text in texts]
