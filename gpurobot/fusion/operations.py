"""Operations of torch on the numbers of a row, as a program of the tracer, with the bits of torch's own.

A row is an index of the one dimension that all rows share, such as an environment. A tensor has the same
numbers for every row, or numbers of the row: each is a cell, at a fixed place from the start of the row.

torch keeps the operations with bits that depend on a library, such as square roots, exponentials and sines,
sums of many numbers, and operations that are rare in a step. The bits of a nan are left open.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpurobot.device.calls import Call, address_of
from physics.trace.statement import Value
from physics.trace.trace import Mask, Program, Scalar, Word
from physics.trace.value import Double, Long

DTYPES: dict[type[Value], torch.dtype] = {
  Scalar: torch.float32,
  Double: torch.float64,
  Long: torch.int64,
  Word: torch.int32,
  Mask: torch.bool,
}
KINDS = {dtype: kind for kind, dtype in DTYPES.items()}
LETTERS = {Scalar: "T", Double: "D", Long: "L", Word: "M"}  # of conversions
FLOATS, INTEGERS = (Scalar, Double), (Long, Word)
NUMBERS = (*FLOATS, *INTEGERS)
MOST = 1024  # numbers of a tensor in a row; images have more, and gain nothing
Values = NDArray[np.object_]  # traced values, in the shape of a tensor with 1 in place of its rows
Operand = Tensor | float
# Torch adds up so many terms one after the other, then up to as many of these sums (multi_row_sum in ATen's
# SumKernel.cpp), for SIDE_BY_SIDE results at once; those that are left over have another order.
CASCADE, SIDE_BY_SIDE = 16, 64
OPTIONS = {"out", "dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking"}


class UnfitError(Exception):
  """An operation is none that rows can express."""


def check(fits: object) -> None:
  """Raise UnfitError if an operation does not fit."""
  if not fits:
    raise UnfitError


class Cell(NamedTuple):
  """A number in memory: the memory's number, the place of the first row and the distance of rows [bytes]."""

  memory: int
  offset: int
  stride: int


class Rows:
  """What a sequence of operations does to a row."""

  def __init__(self, count: int, origin: dict[int, Tensor], numbers: dict[int, int]) -> None:
    """Begin with nothing; by address of a memory, origin: a tensor in it, numbers: in the order of use."""
    self.count, self.origin, self.numbers, self.program = count, origin, numbers, Program()
    self.call: Call  # the present operation
    self.kind: type[Value]  # of its result
    self._held: dict[Cell, Value] = {}
    self._written: dict[Cell, None] = {}  # in order
    self._constants: dict[tuple[type[Value], str], Tensor] = {}

  def add(self, call: Call) -> bool:
    """Add an operation to those before; return whether rows can express it."""
    name, result = re.match(r"aten\._*(\w+?)_*\.", str(call.operation)), call.result
    try:
      check(name and name[1] in OPERATIONS and isinstance(result, Tensor) and result.dtype in KINDS)
      check(call.kwargs.keys() <= OPTIONS and row_dimension(result, self.count) is not None)
      self.call, self.kind = call, KINDS[result.dtype]
      values = OPERATIONS[name[1]](self, *call.args)  # type: ignore[index]
      if values is not None:
        self._write(result, self._cast(values, self.kind))
    except UnfitError:
      return False
    return True

  def node(self, op: str, kind: type[Value], *parts: Values) -> Values:
    """Return an operation on each number of values, in their common shape."""
    return np.asarray(np.frompyfunc(lambda *x: self.program.op(op, kind, *x), len(parts), 1)(*parts), object)

  def get(self, operand: Operand, kind: type[Value] | None = None) -> Values:
    """Return an operand's values as numbers of a kind, by default the result's."""
    kind = kind or self.kind
    if not isinstance(operand, Tensor):
      number = torch.tensor(operand, dtype=DTYPES[kind])
      operand = self._constants.setdefault((kind, repr(operand)), number)
      self.origin[address_of(operand)] = operand
    return self._cast(self.read(operand), kind)

  def read(self, tensor: Tensor) -> Values:
    """Return the values of a tensor."""
    cells, shape = self._cells(tensor)
    return np.array([self._load(cell, KINDS[tensor.dtype]) for cell in cells], object).reshape(shape)

  def fits(self) -> bool:
    """Return whether no two rows share numbers of a memory that is written."""
    for memory in {cell.memory for cell in self._written}:
      cells = [own for own in self._held if own.memory == memory]
      stride = max(cells[0].stride, 1)
      cells.sort(key=lambda own: (own.offset % stride, own.offset))
      for a, b in zip(cells, [*cells[1:], cells[0]], strict=True):
        is_alike = a.stride == b.stride > 0 and type(self._held[a]) is type(self._held[b])
        if not is_alike or (b.offset - a.offset) % stride == 0 < b.offset - a.offset < self.count * stride:
          return False
    return True

  def traced(self, lost: set[int]) -> Program:
    """Return the program, which writes the numbers that are not in memory of `lost` addresses."""
    numbers = {self.numbers.get(address) for address in lost}
    for cell in self._written:
      if cell.memory not in numbers:
        self.program.keep(*cell, self._held[cell])
    return self.program

  def _write(self, tensor: Tensor, values: Values) -> None:
    """Let a tensor have values of its kind."""
    cells, shape = self._cells(tensor)
    self._held |= zip(cells, np.broadcast_to(values, shape).ravel(), strict=True)
    self._written |= dict.fromkeys(cells)

  def _cast(self, values: Values, kind: type[Value]) -> Values:
    """Return values, all of one kind, as numbers of another."""
    own: Any = type(values.flat[0]) if values.size else kind
    if own is kind:
      return values
    check(own not in FLOATS or kind not in INTEGERS)
    if kind is Mask:
      return self.node("true", Mask, values)
    values = self.node("neg", Word, values) if own is Mask else values  # a mask is 0 or -1
    return self.node(f"to_{LETTERS[kind]}", kind, values)

  def _cells(self, tensor: Tensor) -> tuple[list[Cell], list[int]]:
    """Return the cells of a tensor, in order, and its shape with 1 in place of its rows."""
    row, size, address = row_dimension(tensor, self.count), tensor.element_size(), address_of(tensor)
    check(address in self.origin and tensor.dtype in KINDS)
    check(tensor.numel() <= MOST * (1 if row is None else self.count))
    shape = [1 if dim == row else length for dim, length in enumerate(tensor.shape)]
    steps = np.array(tensor.stride(), np.int64).reshape(-1, *[1] * tensor.ndim)
    offsets = (np.indices(shape) * steps).sum(0, np.int64) * size
    offsets += tensor.data_ptr() - self.origin[address].data_ptr()
    stride = 0 if row is None else tensor.stride(row) * size
    memory = self.numbers.setdefault(address, len(self.numbers))
    return [Cell(memory, offset, stride) for offset in offsets.ravel().tolist()], shape

  def _load(self, cell: Cell, kind: type[Value]) -> Value:
    """Return the number in a cell; a 32-bit integer may be half of one of 64 bits."""
    for back, half in ((0, "to_M"), (4, "high")):
      whole = self._held.get(cell._replace(offset=cell.offset - back))
      if kind is Word and isinstance(whole, Long):
        return self.program.op(half, Word, whole)
    if cell not in self._held:
      self._held[cell] = self.program.fetch(kind, *cell)
    check(isinstance(self._held[cell], kind))
    return self._held[cell]


def row_dimension(tensor: Tensor, rows: int) -> int | None:
  """Return the dimension of a tensor's rows; None if it has none; raise UnfitError if it could be several."""
  found = [dim for dim, length in enumerate(tensor.shape) if length == rows]
  check(len(found) <= 1)
  return found[0] if found else None


def _apply(op: str, *kinds: type[Value], result: type[Value] | None = None) -> Callable[..., Values]:
  """Return what applies an operation to operands, in the kind in which torch does if that is one of some."""

  def apply(rows: Rows, *operands: Operand) -> Values:
    kind: Any = KINDS.get(torch.result_type(operands[0], operands[-1]))
    check(kind in kinds and len(operands) <= 2 and (op != "rshift" or isinstance(operands[1], int)))
    kind = Scalar if op == "div" and kind in INTEGERS else kind
    own = "bitwise_and" if op == "mul" and kind is Mask else op
    return rows.node(own, result or kind, *(rows.get(operand, kind) for operand in operands))

  return apply


def _where(rows: Rows, mask: Tensor, a: Operand, b: Operand) -> Values:
  return rows.node("pick", rows.kind, rows.get(mask, Mask), rows.get(a), rows.get(b))


def _clamp(rows: Rows, x: Tensor, low: Operand | None = None, high: Operand | None = None) -> Values:
  check(rows.kind in NUMBERS)
  value = rows.get(x)
  for bound, op in ((low, "above"), (high, "below")):
    if bound is not None:  # of equal numbers, as 0 and -0, torch takes a tensor's, but its own for a number
      pair = [rows.get(bound), value]
      value = rows.node(op, rows.kind, *(pair[::-1] if isinstance(bound, Tensor) else pair))
  return value


def _nan_to_num(rows: Rows, *operands: Operand) -> Values:
  check(rows.kind in FLOATS and len(operands) == 4 and None not in operands[1:])
  return rows.node("finite", rows.kind, *map(rows.get, operands))


def _cat(rows: Rows, parts: Sequence[Tensor], dim: int = 0) -> Values:
  dim %= rows.call.result.ndim
  check(dim != row_dimension(rows.call.result, rows.count))
  return np.concatenate([rows.get(part) for part in parts if part.shape != (0,)], dim)


def _sum(rows: Rows, x: Tensor, dims: Sequence[int] = (), keepdim: bool = False) -> Values:
  row = row_dimension(x, rows.count)
  check(dims and len(dims) == 1 and row not in {None, dims[0] % x.ndim} and rows.kind in FLOATS)
  check(KINDS.get(x.dtype) is rows.kind and x.stride(row) == 1 and x.shape[dims[0]] < CASCADE**2)
  check(rows.count % SIDE_BY_SIDE == 0)
  total: Any = partial(reduce, partial(rows.node, "add", rows.kind))
  terms, zero = [*np.moveaxis(rows.get(x), dims[0], 0)], rows.get(0)
  whole = len(terms) // CASCADE * CASCADE
  sums = [total(terms[i : i + CASCADE], zero) for i in range(0, whole, CASCADE)]
  result = total([total(terms[whole:], zero), total(sums, zero)], zero)
  return np.expand_dims(result, dims[0]) if keepdim else result


# By name, whether they write to their first argument or not. They give values, or None if they write nothing.
OPERATIONS: dict[str, Callable[..., Values | None]] = {
  **{name: _apply(name, *NUMBERS) for name in ("add", "sub", "rsub", "div", "neg")},
  "mul": _apply("mul", *NUMBERS, Mask),
  **{name: _apply(name, Scalar) for name in ("abs", "floor")},
  **{name: _apply(f"is_{name}", *NUMBERS, result=Mask) for name in ("gt", "ge", "lt", "le")},
  **{name: _apply(f"is_{name}", *NUMBERS, Mask, result=Mask) for name in ("eq", "ne")},
  **{f"bitwise_{name}": _apply(f"bitwise_{name}", *INTEGERS, Mask) for name in ("and", "or", "xor", "not")},
  "rshift": _apply("rshift", *INTEGERS),
  "pow": lambda rows, x, power: OPERATIONS["mul"](rows, x, x) if repr(power) == "2" else check(False),
  "square": lambda rows, x: OPERATIONS["mul"](rows, x, x),
  "where": _where,
  "masked_fill": lambda rows, x, mask, value: _where(rows, mask, value, x),
  **dict.fromkeys(("clamp", "clamp_min", "maximum"), _clamp),
  **dict.fromkeys(("clamp_max", "minimum"), lambda rows, x, high: _clamp(rows, x, None, high)),
  "nan_to_num": _nan_to_num,
  "copy": lambda rows, _, source, *__: rows.read(source),
  **dict.fromkeys(("clone", "to_copy"), lambda rows, source: rows.read(source)),
  **dict.fromkeys(("zero", "zeros_like", "new_zeros"), lambda rows, *_: rows.get(0)),
  **dict.fromkeys(("ones_like", "new_ones"), lambda rows, *_: rows.get(1)),
  "fill": lambda rows, _, value: rows.get(value),
  "empty_like": lambda *_: None,
  "cat": _cat,
  "stack": lambda rows, parts, dim=0: np.stack([*map(rows.get, parts)], dim % rows.call.result.ndim),
  "sum": _sum,
}
