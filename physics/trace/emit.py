"""The C++ text of traced programs for Warp: lanes on a CPU, scalar on CUDA.

The C++ body goes into one `wp.func_native`, called by a kernel of a few parameters. The text depends on the
program alone, byte for byte, so that Warp's kernel cache finds it again in the next process.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from physics.trace.farthest import farthest_text
from physics.trace.parts import Part, find_parts
from physics.trace.preamble import across, exact, preamble
from physics.trace.statement import BLOCKS, Statement, Value, walk
from physics.trace.trace import Array, Index, Mask, Program, Scalar, Word
from physics.trace.value import Double, Long
from physics.trace.writer import INFIX, Writer, is_read, lane_lists

BETWEEN = 500  # statements between two barriers: about 8 KB of machine code
_CTYPE = {Scalar: "T", Mask: "M", Word: "W", Index: "int", Double: "D", Long: "L"}


def native_source(program: Program, lanes: int, unroll: bool = True, in_step: bool = False) -> str:
  """Return the body of a native function of (env, parameters..., arrays...) for `lanes` environments at once.

  Without `unroll`, the compiler does not unroll the loops of one environment's text. `in_step`: on CUDA, the
  warps of a block pass the text together.
  """
  rolled, parts = lanes == 1 and not unroll, find_parts(program) if lanes > 1 else {}
  writer = (_InStep if in_step else _Native)(program, lanes, rolled, parts)
  kinds = {s.kind for s in walk(program.body)}
  extra = farthest_text(lanes) if "farthest" in kinds else ""
  extra += across(lanes) if "lane" in kinds else ""
  return preamble(lanes) + extra + "\n".join(writer.lines()) + "\n"


def exact_source(programs: Sequence[Program], lanes: int) -> str:
  """Return the body of a native function of (env, program, memory), which runs one of some programs."""
  whole = Program()
  number = whole.parameter("program")
  with whole.loop(1):  # large blocks in loops become functions
    for i, each in enumerate(programs):
      with whole.when_equal(number, i):
        whole.block.body += each.finish().body
  return exact(lanes) + "\n".join(_Native(whole, lanes, False, find_parts(whole)).lines()) + "\n"


def array_bytes(program: Program, lanes: int) -> int:
  """Return the size [bytes] of a program's arrays in `native_source`: at most 4 per lane and element."""
  return sum(4 * room(array, lanes) * (1 if array.kind is Index else lanes) for array in program.arrays)


def room(array: Array, lanes: int) -> int:
  """Return the number of elements that an array has in the text for so many lanes."""
  return array.size if lanes > 1 else array.alone


class _Native(Writer):
  """The writer of C++ text, with loops kept rolled or left to the compiler, and some blocks as functions."""

  LINES: ClassVar[dict[str, str]] = {
    "lane": "const T {s.result.name} = lane_numbers_();",
    "read": "const T {s.result.name} = read_({s.op}, {0});",
    "when_any": "if (any_({0})) {{",
    "when_equal": "if ({0} == {1}) {{",
    "when_less": "if ({0} < {1}) {{",
  }
  closing = "}"

  def __init__(self, program: Program, lanes: int, rolled: bool, parts: dict[Statement, Part]) -> None:
    super().__init__(program)
    self.before_loop = ["#pragma unroll 1"] if rolled else []
    self.parts = parts
    # CUDA's compiler refuses arrays without elements.
    self.memory = {
      array.name: (_CTYPE[array.kind], str(max(1, room(array, lanes)))) for array in program.arrays
    }
    self.memory |= {lanes.name: ("int", "LANES") for lanes in lane_lists(program)}

  def lines(self) -> Iterator[str]:
    for (integral, entries), name in self.program.tables.items():
      text = ", ".join(map(str, entries) if integral else _floats(entries))
      yield f"static const {'int' if integral else 'float'} {name}[{len(entries)}] = {{{text}}};"
    owned = {name for part in self.parts.values() for name in part.own}
    yield from self.declarations(name for name in self.memory if name not in owned)
    yield from self.block(self.program.body, "")

  def declarations(self, names: Iterable[str]) -> Iterator[str]:
    """Yield the declarations of memory; unread arrays have none."""
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
    return str(arg) if isinstance(arg, int) else f"F({_floats([arg])[0]})"

  def emit_op(self, s: Statement) -> Iterator[str]:
    integral = s.op in ("bit", "iadd", "isub", "imul")
    a = [self.value(x if integral else _real(x)) for x in s.args]
    if s.op in INFIX:
      text = f"{a[0]} {INFIX[s.op]} {a[1]}"
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

  def emit_farthest(self, s: Statement) -> Iterator[str]:
    tables, hull, *direction, lanes = s.args
    number = f"T((float){hull.name})" if isinstance(hull, Index) else self.value(_real(hull))
    asked = (number, *(self.value(_real(x)) for x in direction), self.value(lanes))
    yield f"const T {s.result.name} = farthest_({', '.join((*tables, *asked))});"

  def emit_take(self, s: Statement) -> Iterator[str]:
    index, size, lane = s.args
    name, arguments = self.across("take", (self.value(_real(index)),), lane)
    yield f"const T {s.result.name} = {name}({s.op}, {size}, {arguments});"

  def emit_put(self, s: Statement) -> Iterator[str]:
    index, size, value, mask, lane = s.args
    arguments = (*(self.value(_real(x)) for x in (index, value)), self.value(mask))
    name, text = self.across("put", arguments, lane)
    yield f"{name}({s.op}, {size}, {text});"

  def across(self, name: str, arguments: Sequence[str], lane: Any) -> tuple[str, str]:
    """Return the function for the memory of the own lane, or of another, and its arguments."""
    if lane is None:
      return f"{name}_", ", ".join(arguments)
    return f"{name}_of_", ", ".join((*arguments, self.value(_real(lane))))

  def emit_store(self, s: Statement) -> Iterator[str]:
    index, value, kind = s.args
    yield f"{s.op}[{self.value(index)}] = {self.value(_real(value) if kind is Scalar else value)};"

  def emit_write(self, s: Statement) -> Iterator[str]:
    row, value, mask, integer = s.args
    arguments = (s.op, self.value(row), self.value(_real(value)), self.value(mask))
    yield f"write_{'int_' if integer else ''}({', '.join(arguments)});"

  def emit_fetch(self, s: Statement) -> Iterator[str]:
    place, ctype = ", ".join(map(str, s.args)), _CTYPE[type(s.result)]
    text = f"-to_M_(fetch_({place}, C()))" if isinstance(s.result, Mask) else f"fetch_({place}, {ctype}())"
    yield f"const {ctype} {s.result.name} = {text};"

  def emit_keep(self, s: Statement) -> Iterator[str]:
    *place, value = s.args
    text = f"to_C_(-{value.name})" if isinstance(value, Mask) else value.name
    yield f"keep_({', '.join(map(str, place))}, {text});"

  def emit_for(self, s: Statement) -> Iterator[str]:
    i, (start, count) = s.result.name, s.args
    yield from self.before_loop
    yield f"for (int {i} = {self.value(start)}; {i} < {self.value(count)}; ++{i}) {{"

  def emit_for_value(self, s: Statement) -> Iterator[str]:
    i, (number, mask) = s.result.name, s.args
    yield f"for (unsigned left = lanes_({self.value(mask)}); left;) {{"
    yield f"  const int {i} = index_({number.name}, lowest_(left));"
    yield f"  left &= (left - 1) & ~lanes_(is_({number.name}, {i}));"

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
    for array in (a for a in lanes.fields.values() if is_read(self.program, a)):
      yield f"    {array.name}[slot] = {'F(0.0f)' if array.kind is Scalar else 'W(0)'};"
    yield "  }"
    for i, (array, value) in enumerate(stored):
      lane = "lane_" if array.kind is Scalar else "word_"
      source = f"{lane}({lanes.name}_{i}, l)" if own[i] else self.value(value)
      yield f"  {lane}({array.name}[slot], l) = {source};"
    yield f"  if (slot == {lanes.name}[l]) ++{lanes.name}[l];"
    yield "} }"

  def emit_pool(self, s: Statement) -> Iterator[str]:
    pool, mask, *_ = s.args
    stored = self.stored(s)
    yield "{"
    for i, (array, value) in enumerate(stored):
      yield f"T {array.name}_{i} = {self.value(_real(value))};"
    yield f"for (unsigned left = lanes_({mask.name}); left; left &= left - 1) {{"
    yield f"  const int at = {pool.items.name}[0]++, row = at / LANES;"
    yield "  if (at % LANES == 0) {"
    yield f"    {pool.size.name}[0] = row + 1;"
    for array, _ in stored:
      yield f"    {array.name}[row] = F(0.0f);"
    yield "  }"
    for i, (array, _) in enumerate(stored):
      yield f"  lane_({array.name}[row], at % LANES) = lane_({array.name}_{i}, lowest_(left));"
    yield "} }"


class _InStep(_Native):
  """The writer of CUDA text in which the warps of a block pass the code together: one fetch serves all.

  The code of a step is longer than the instruction cache; warps that are apart fetch each
  instruction for themselves. There is a barrier wherever all threads of the block come by: outside of guarded
  blocks and of loops with a count of the environment's own. A loop that ends once an environment is done ends
  here once all of the block are: those that are done wait. Only the loop over the substeps, which they leave
  if they diverge, do they follow to the end, like lanes of a CPU.
  """

  together = True  # all threads of the block run the statement
  over_substeps = False  # it is in the loop over the substeps itself, not in an inner one
  passed = 0  # statements since the last barrier

  def block(self, body: list[Statement], indent: str) -> Iterator[str]:
    together, over_substeps = self.together, self.over_substeps
    for statement in body:
      if together and self.passed >= BETWEEN:
        self.passed = 0
        yield f"{indent}__syncthreads();"
      self.passed += 1
      self.together = together and (statement.kind not in BLOCKS or self.is_alike(statement))
      self.over_substeps = any(self.is_parameter(bound) for bound in statement.args) or (
        over_substeps and statement.kind not in BLOCKS
      )
      yield from super().block([statement], indent)
      # Finished environments skip the rest.
      together = together and (over_substeps or statement.kind != "break_if_none")
    self.together, self.over_substeps = together, over_substeps

  def is_parameter(self, bound: Any) -> bool:
    """Return whether a number is a parameter of the launch."""
    return isinstance(bound, Index) and bound.name in self.program.parameters

  def is_alike(self, block: Statement) -> bool:
    """Return whether a block is a loop with as many passes for every thread."""
    return block.kind == "for" and all(isinstance(x, int) or self.is_parameter(x) for x in block.args)

  def emit_break_if_none(self, s: Statement) -> Iterator[str]:
    if not self.together:
      yield from super().emit_break_if_none(s)
      return
    self.passed = 0
    mask = self.value(s.args[0])
    yield f"if (!__syncthreads_or(any_({mask}))) break;"
    if not self.over_substeps:
      yield f"if (!any_({mask})) continue;"


def _ctype(value: Value) -> str:
  return next(ctype for kind, ctype in _CTYPE.items() if isinstance(value, kind))


def _real(value: object) -> object:
  return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _floats(values: Sequence[float]) -> list[str]:
  """Return the shortest literals of float32 numbers; numbers beyond their range are clipped."""
  largest = np.finfo(np.float32).max
  texts = map(str, np.clip(np.array(values, float), -largest, largest).astype(np.float32))
  return [f"{text}f" if "." in text or "e" in text else f"{text}.0f" for text in texts]
