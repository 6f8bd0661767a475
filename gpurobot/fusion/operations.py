"""Operations of torch on the numbers of a row, as a program of the tracer, with the bits of torch's own.

A row is an index of the one dimension that all rows share, such as an environment. A tensor has the same
numbers for every row, or numbers of the row: each is a cell, at a fixed place from the start of the row.

Left out are operations whose bits depend on a library, such as square roots, exponentials and sines, sums of
many numbers, and what hardly any task does in a step. Which bits a nan has is left open.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpurobot.device.calls import Call, address_of
from physics.trace.statement import Value
from physics.trace.trace import Mask, Program, Scalar, Word
from physics.trace.value import Double, Half, Long

DTYPES: dict[type[Value], torch.dtype] = {
  Scalar: torch.float32,
  Double: torch.float64,
  Half: torch.bfloat16,
  Long: torch.int64,
  Word: torch.int32,
  Mask: torch.bool,
}
KINDS = {dtype: kind for kind, dtype in DTYPES.items()}
LETTERS = {Scalar: "T", Double: "D", Half: "H", Long: "L", Word: "M"}  # of conversions
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
  """A number in memory: the memory's address, the place of the first row and the distance of rows [bytes]."""

  memory: int
  offset: int
  stride: int


class Rows:
  """What a sequence of operations does to a row."""

  def __init__(self, count: int, origin: dict[int, Tensor], numbers: dict[int, int]) -> None:
    """Begin with nothing; origin: a tensor of each memory; numbers: of memory, in the order of its use."""
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

  def pick(self, mask: Values, a: Values, b: Values) -> Values:
    """Return a where the mask holds, else b."""
    return self.node("pick", self.kind, mask, a, b)

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
      kinds = {(own.stride, type(self._held[own])) for own in cells}
      if len(kinds) > 1 or cells[0].stride == 0:
        return False
      cells.sort(key=lambda own: (own.offset % own.stride, own.offset))
      for a, b in pairwise(cells):
        apart = b.offset - a.offset
        if apart % a.stride == 0 and apart < self.count * a.stride:
          return False
    return True

  def traced(self, lost: set[int]) -> Program:
    """Return the program, which writes the numbers that are not in `lost` memory."""
    for cell in self._written:
      if cell.memory not in lost:
        self.program.keep(*self._at(cell), self._held[cell])
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
    check(Half not in {own, kind} or Scalar in {own, kind})
    check(own not in FLOATS or kind not in INTEGERS)
    if kind is Mask:
      return self.node("true", Mask, values)
    values = self.node("neg", Word, values) if own is Mask else values  # a mask is 0 or -1
    return self.node(f"to_{LETTERS[kind]}", kind, values)

  def _cells(self, tensor: Tensor) -> tuple[list[Cell], list[int]]:
    """Return the cells of a tensor, in order, and its shape with 1 in place of its rows."""
    row, size, memory = row_dimension(tensor, self.count), tensor.element_size(), address_of(tensor)
    check(memory in self.origin and tensor.dtype in KINDS)
    check(tensor.numel() <= MOST * (1 if row is None else self.count))
    shape = [1 if dim == row else length for dim, length in enumerate(tensor.shape)]
    steps = np.array(tensor.stride(), np.int64).reshape(-1, *[1] * tensor.ndim)
    offsets = (np.indices(shape) * steps).sum(0, np.int64) * size
    offsets += tensor.data_ptr() - self.origin[memory].data_ptr()
    stride = 0 if row is None else tensor.stride(row) * size
    return [Cell(memory, offset, stride) for offset in offsets.ravel().tolist()], shape

  def _load(self, cell: Cell, kind: type[Value]) -> Value:
    """Return the number in a cell; a 32-bit integer may be half of one of 64 bits."""
    for back, half in ((0, "to_M"), (4, "high")):
      whole = self._held.get(cell._replace(offset=cell.offset - back))
      if kind is Word and isinstance(whole, Long):
        return self.program.op(half, Word, whole)
    if cell not in self._held:
      self._held[cell] = self.program.fetch(kind, *self._at(cell))
    check(isinstance(self._held[cell], kind))
    return self._held[cell]

  def _at(self, cell: Cell) -> Cell:
    """Return a cell with its memory's number for its address."""
    return cell._replace(memory=self.numbers.setdefault(cell.memory, len(self.numbers)))


def row_dimension(tensor: Tensor, rows: int) -> int | None:
  """Return the dimension of a tensor's rows; None if it has none; raise UnfitError if it could be several."""
  found = [dim for dim, length in enumerate(tensor.shape) if length == rows]
  check(len(found) <= 1)
  return found[0] if found else None


def _apply(
  op: str, *kinds: type[Value], result: type[Value] | None = None, swapped: bool = False
) -> Callable[..., Values]:
  """Return what applies an operation to operands, in the kind in which torch does if that is one of some."""

  def apply(rows: Rows, *operands: Operand) -> Values:
    kind = KINDS.get(torch.result_type(operands[0], operands[-1]))
    check(kind in kinds and len(operands) <= 2 and (op != "right" or isinstance(operands[1], int)))
    kind = Scalar if op == "div" and kind in INTEGERS else kind
    assert kind
    own = "both" if op == "mul" and kind is Mask else op
    parts = [rows.get(operand, kind) for operand in operands]
    return rows.node(own, result or kind, *(parts[::-1] if swapped else parts))

  return apply


def _square(rows: Rows, x: Tensor, power: Operand = 2) -> Values:
  check(not isinstance(power, Tensor) and power == 2)
  return _multiply(rows, x, x)


def _where(rows: Rows, mask: Tensor, a: Operand, b: Operand) -> Values:
  return rows.pick(rows.get(mask, Mask), rows.get(a), rows.get(b))


def _clamp(rows: Rows, x: Tensor, low: Operand | None = None, high: Operand | None = None) -> Values:
  check(rows.kind in NUMBERS)
  value = rows.get(x)
  for bound, op in ((low, "above"), (high, "below")):
    if bound is not None:  # of equal numbers, as 0 and -0, torch takes a tensor's, but its own for a number
      pair = [rows.get(bound), value]
      value = rows.node(op, rows.kind, *(pair[::-1] if isinstance(bound, Tensor) else pair))
  return value


def _nan_to_num(rows: Rows, x: Tensor, *new: Operand) -> Values:
  check(rows.kind in FLOATS and len(new) == 3 and None not in new)
  value = rows.get(x)
  for limit, own in zip((np.inf, -np.inf), new[1:], strict=True):
    value = rows.pick(rows.node("equal", Mask, value, rows.get(limit)), rows.get(own), value)
  return rows.pick(rows.node("differ", Mask, value, value), rows.get(new[0]), value)


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


_multiply = _apply("mul", *NUMBERS, Mask)
# By name, whether they write to their first argument or not. They give values, or None if they write nothing.
OPERATIONS: dict[str, Callable[..., Values | None]] = {
  **{name: _apply(name, *NUMBERS) for name in ("add", "sub", "div", "neg")},
  "mul": _multiply,
  "rsub": _apply("sub", *NUMBERS, swapped=True),
  **{name: _apply(name, Scalar) for name in ("abs", "floor")},
  **{name: _apply("more", *NUMBERS, result=Mask, swapped=name == "lt") for name in ("gt", "lt")},
  **{name: _apply("least", *NUMBERS, result=Mask, swapped=name == "le") for name in ("ge", "le")},
  **{name: _apply(op, *NUMBERS, Mask, result=Mask) for name, op in (("eq", "equal"), ("ne", "differ"))},
  "bitwise_and": _apply("both", *INTEGERS, Mask),
  "bitwise_or": _apply("either", *INTEGERS, Mask),
  "bitwise_xor": _apply("one", *INTEGERS, Mask),
  "bitwise_not": _apply("invert", *INTEGERS, Mask),
  "rshift": _apply("right", *INTEGERS),
  **dict.fromkeys(("pow", "square"), _square),
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
