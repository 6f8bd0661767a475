"""The C++ text of a program of rows: it computes LANES rows side by side."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from gpurobot.fusion.program import SIZES, Cell, Node, Program

LANES = 16  # numbers of 32 bits in a register of AVX-512, or in two of AVX2
# A text is the body of a function of `block`, the index of LANES rows, and of three arrays: `base` has the
# address of each memory, `place` that of each cell in its memory, `number` the constants, in 64 bits each.
PREAMBLE = f"""
#define LANES {LANES}
#define VECTOR(scalar, name) typedef scalar name __attribute__((ext_vector_type(LANES)))
#define UNALIGNED(scalar, vector, name) typedef vector name __attribute__((aligned(sizeof(scalar))))
VECTOR(float, F); VECTOR(double, D); VECTOR(long long, L); VECTOR(int, I); VECTOR(unsigned, U);
VECTOR(unsigned short, H); VECTOR(short, S); VECTOR(unsigned char, C);
UNALIGNED(float, F, FU); UNALIGNED(double, D, DU); UNALIGNED(long long, L, LU); UNALIGNED(int, I, IU);
UNALIGNED(unsigned short, H, HU); UNALIGNED(unsigned char, C, CU);
#define CONVERT __builtin_convertvector
const long long row = (long long)block * LANES;
const I LANE = {{{", ".join(map(str, range(LANES)))}}};
auto apart = [&](auto* first, int stride, auto r) {{
#if defined(__AVX512F__)  // one instruction, which clang does not find by itself
  if constexpr (sizeof(*first) == 4)
    return __builtin_bit_cast(
      decltype(r), __builtin_ia32_gathersiv16sf(F(), (const float*)first, LANE * stride, -1, 1));
#endif
  for (int l = 0; l < LANES; ++l) r[l] = *(decltype(first))((const char*)first + l * (long long)stride);
  return r; }};
auto put_apart = [&](auto* first, int stride, auto x) {{
#if defined(__AVX512F__)
  if constexpr (sizeof(*first) == 4)
    return __builtin_ia32_scattersiv16sf(first, -1, LANE * stride, __builtin_bit_cast(F, x), 1);
#endif
  for (int l = 0; l < LANES; ++l) *(decltype(first))((char*)first + l * (long long)stride) = x[l]; }};
auto to_bf16 = [](F x) -> H {{  // to the nearest, of two the even one
  U bits = __builtin_bit_cast(U, x);
  H rounded = CONVERT((bits + U(0x7fff) + ((bits >> U(16)) & U(1))) >> U(16), H);
  return CONVERT(x != x, S) ? H(0x7fc0) : rounded; }};
"""
VECTORS = {"f": "F", "d": "D", "l": "L", "i": "I", "b": "I", "h": "H"}  # a bool is 0 or -1
STORED = VECTORS | {"b": "C"}
SCALARS = {
  "f": "float",
  "d": "double",
  "l": "long long",
  "i": "int",
  "b": "unsigned char",
  "h": "unsigned short",
}
NUMBERS = {"f": np.float32, "d": np.float64, "l": np.int64, "i": np.int32}
MASKS = {"f": "{}", "i": "{}", "b": "{}", "d": "CONVERT({}, L)", "l": "CONVERT({}, L)", "h": "CONVERT({}, S)"}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
TEXTS = {
  "yes": "I(-1)",
  "no": "I(0)",
  "add": "{0} + {1}",
  "sub": "{0} - {1}",
  "mul": "{0} * {1}",
  "div": "{0} / {1}",
  "and": "{0} & {1}",
  "or": "{0} | {1}",
  "xor": "{0} ^ {1}",
  "shl": "{0} << {1}",
  "shr": "{0} >> {1}",
  "neg": "-{0}",
  "not": "~{0}",
  "abs": "__builtin_elementwise_abs({0})",
  "floor": "__builtin_elementwise_floor({0})",
  "low": "CONVERT({0}, I)",
  "high": "CONVERT({0} >> L(32), I)",
  "b2f": "CONVERT(-{0}, F)",
  "b2d": "CONVERT(-{0}, D)",
  "b2l": "CONVERT(-{0}, L)",
  "b2i": "-{0}",
  "f2b": "{0} != F(0.0f)",
  "l2b": "CONVERT({0} != L(0), I)",
  "f2h": "to_bf16({0})",
  "h2f": "__builtin_bit_cast(F, CONVERT({0}, U) << U(16))",
}


class Text:
  """The text of a program, and what its arrays must hold; what nothing uses is left out.

  Neither the number of rows nor the constants change the text.
  """

  def __init__(self, program: Program) -> None:
    self._program, self._cells = program, [*program.cells]
    self._partial = {
      cell: part for cell, (value, _) in program.stores.items() if (part := self._part(cell, value))
    }
    needed = self._needed()
    self.numbers = [*program.numbers]  # constants, by kind and text
    nodes = (node for i, node in enumerate(program.nodes) if i in needed and node.op == "load")
    loaded = {self._cells[node.args[0]] for node in nodes}
    used = [cell for cell in self._cells if cell in loaded or cell in program.stores]
    self._rare = self._partial.keys() - loaded
    # Indices of memories, by address, and of cells: those that a loop asks for lie side by side.
    self.bases = {memory: i for i, memory in enumerate(dict.fromkeys(cell.memory for cell in used))}
    used.sort(key=lambda cell: (self.bases[cell.memory], self._ahead(cell), cell.stride))
    self.places = {cell: i for i, cell in enumerate(used)}
    begins = (f"char* const b{i} = (char*)base[{i}];" for i in self.bases.values())
    self.body = "\n".join([*begins, *self._prefetches(), *self._statements(needed)])

  def _part(self, cell: Cell, value: int) -> tuple[str, int, int] | None:
    """Return where alone a store changes a cell: the condition, its node, and that of the new value."""
    node, before = self._program.nodes[value], self._program.loaded(cell)
    if node.op != "select" or before is None or before not in node.args[1:]:
      return None
    condition, new, old = node.args
    return (f"v{condition}", condition, new) if old == before else (f"~v{condition}", condition, old)

  def _needed(self) -> set[int]:
    """Return the indices of the nodes that are stored, or that such nodes use."""
    nodes, stores = self._program.nodes, self._program.stores
    needed = {value for cell, (value, _) in stores.items() if cell not in self._partial}
    needed.update(*(part[1:] for part in self._partial.values()))
    for index in reversed(range(len(nodes))):
      if index in needed and nodes[index].op not in {"load", "number"}:
        needed.update(nodes[index].args)
    return needed

  def _ahead(self, cell: Cell) -> bool:
    """Return whether the next block's cell is worth asking for: rows lie side by side, and all are used."""
    return cell.stride == SIZES[cell.kind] and cell not in self._rare

  def _prefetches(self) -> Iterator[str]:
    """Yield what asks for the next block's memory: cells lie a page apart, which no processor foresees."""
    for (memory, stride), cells in groupby(
      filter(self._ahead, self.places), lambda own: (own.memory, own.stride)
    ):
      places = [self.places[cell] for cell in cells]
      yield "#pragma clang loop unroll(disable)"
      yield f"for (int i = {places[0]}; i <= {places[-1]}; ++i)"
      yield f"  __builtin_prefetch(b{self.bases[memory]} + place[i] + (row + LANES) * {stride}, 0, 2);"

  def _statements(self, needed: set[int]) -> Iterator[str]:
    due: dict[int, list[tuple[Cell, int]]] = {}  # by the number of nodes after which they are
    for cell, (value, when) in self._program.stores.items():
      due.setdefault(when, []).append((cell, value))
    for index, node in enumerate(self._program.nodes):
      yield from self._stores(due.get(index, ()))  # what the cells held before has been loaded by then
      if index in needed:
        yield f"const {VECTORS[node.kind]} v{index} = {self._expression(node)};"
    yield from self._stores(due.get(len(self._program.nodes), ()))

  def _stores(self, stores: Sequence[tuple[Cell, int]]) -> Iterator[str]:
    """Yield stores; those that change few rows, such as where an episode ends, are left out where none is."""
    for where, group in groupby(stores, lambda item: self._partial.get(item[0], ("",))[0]):
      yield f"if (__builtin_reduce_or({where})) {{" if where else "{"
      for cell, value in group:
        if where:
          mask, new = MASKS[cell.kind].format(where), self._partial[cell][2]
          yield self._store(cell, f"({mask} ? v{new} : {self._load(cell)})")
        else:
          yield self._store(cell, f"v{value}")
      yield "}"

  def _expression(self, node: Node) -> str:
    if node.op == "load":
      return self._load(self._cells[node.args[0]])
    if node.op == "number":
      return f"{VECTORS[node.kind]}(*(const {SCALARS[node.kind]}*)(number + {node.args[0]}))"
    args = [f"v{index}" for index in node.args]
    if node.op in COMPARISONS:
      text = f"{args[0]} {COMPARISONS[node.op]} {args[1]}"
      return text if self._kind(node.args[0]) in "fi" else f"CONVERT({text}, I)"
    if node.op == "select":
      return f"{MASKS[node.kind].format(args[0])} ? {args[1]} : {args[2]}"
    if node.op in TEXTS:
      return TEXTS[node.op].format(*args)
    return f"CONVERT({args[0]}, {VECTORS[node.kind]})"

  def _kind(self, index: int) -> str:
    return self._program.nodes[index].kind

  def _load(self, cell: Cell) -> str:
    scalar, vector = SCALARS[cell.kind], STORED[cell.kind]
    if not cell.stride:
      text = f"{vector}(*(const {scalar}*){self._address(cell)})"
    elif cell.stride == SIZES[cell.kind]:
      text = f"*(const {vector}U*){self._address(cell)}"
    else:
      text = f"apart((const {scalar}*){self._address(cell)}, {cell.stride}, {vector}())"
    return f"-CONVERT({text}, I)" if cell.kind == "b" else text

  def _store(self, cell: Cell, text: str) -> str:
    scalar, vector = SCALARS[cell.kind], STORED[cell.kind]
    text = f"CONVERT(-{text}, C)" if cell.kind == "b" else text
    if cell.stride == SIZES[cell.kind]:
      return f"*({vector}U*){self._address(cell)} = {text};"
    return f"put_apart(({scalar}*){self._address(cell)}, {cell.stride}, {text});"

  def _address(self, cell: Cell) -> str:
    return f"(b{self.bases[cell.memory]} + place[{self.places[cell]}] + row * {cell.stride})"


def constants(numbers: Sequence[tuple[str, str]]) -> NDArray[np.int64]:
  """Return constants, each in the first bytes of 8."""
  memory = np.zeros(len(numbers) + 1, np.int64)  # none would be no array
  for i, (kind, text) in enumerate(numbers):
    number = float(text) if kind in "fd" else int(text)
    memory[i : i + 1].view(NUMBERS[kind])[0] = number
  return memory
