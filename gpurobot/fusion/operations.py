"""Operations of torch on the numbers of a row, as a program of the tracer, with the bits of torch's own.

A row is an index of the one dimension that all rows share, such as an environment. A tensor has the same
numbers for every row, or numbers of the row: each is a cell, at a fixed place from the start of the row.

Left out are operations whose bits depend on a library, such as square roots, exponentials and sines, and sums
of many numbers. Which bits a nan has is left open.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpurobot.device.calls import Call
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
# Conversions between kinds, as operations one after the other; a mask is 0 or -1.
CONVERSIONS: dict[tuple[type[Value], type[Value]], Sequence[str]] = {
  **{(kind, Scalar): ["to_T"] for kind in (Word, Long, Double)},
  **{(kind, Double): ["to_D"] for kind in (Word, Long, Scalar)},
  **{(kind, Mask): ["true"] for kind in (Scalar, Long)},
  **{(Mask, kind): ["neg", *then] for kind, then in ((Scalar, ["to_T"]), (Long, ["to_L"]), (Word, []))},
  (Long, Word): ["to_M"],
  (Word, Long): ["to_L"],
  (Scalar, Half): ["narrow"],
  (Half, Scalar): ["widen"],
}
FLOATS, INTEGERS = (Scalar, Double), (Long, Word)
MOST = 1024  # numbers of a tensor in a row; images have more, and gain nothing
Values = NDArray[np.object_]  # traced values, in the shape of a tensor with 1 in place of its rows
Operand = Tensor | float
# Torch adds up so many terms one after the other, then so many of these sums, and so on (multi_row_sum in
# ATen's SumKernel.cpp), for SIDE_BY_SIDE results at once; those that are left over have another order.
CASCADE, SIDE_BY_SIDE = 16, 64
CREATION = {"dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking"}  # options of copies


class UnfitError(Exception):
  """An operation is none that rows can express."""


def check(fits: object) -> None:
  """Raise UnfitError if an operation does not fit."""
  if not fits:
    raise UnfitError


class Cell(NamedTuple):
  """A number in memory: the memory's address, the distance of rows and the place of the first one [bytes].

  Constants have no memory: their place is the number itself, as its bytes say it.
  """

  memory: int
  stride: int
  offset: int
  kind: type[Value]


class Rows:
  """What a sequence of operations does to a row."""

  def __init__(self, count: int, cells: Mapping[Cell, int]) -> None:
    """Begin with nothing; cells: the number of each cell, which it gets when it is asked for."""
    self.count, self.cells, self.program = count, cells, Program()
    self.call: Call  # the present operation
    self.kind: type[Value]  # of its result
    self._written: dict[Cell, Value] = {}
    self._loaded: dict[Cell, Value] = {}
    self._held: dict[tuple[int, ...], Value] = {}  # values, by the place that holds them

  def node(self, op: str, kind: type[Value], *parts: Values) -> Values:
    """Return an operation on each number of values, in their common shape."""
    return np.asarray(np.frompyfunc(lambda *x: self.program.op(op, kind, *x), len(parts), 1)(*parts), object)

  def pick(self, mask: Values, a: Values, b: Values) -> Values:
    """Return a where the mask holds, else b."""
    return self.node("pick", self.kind, mask, a, b)

  def get(self, operand: Operand, kind: type[Value] | None = None) -> Values:
    """Return an operand's values as numbers of a kind, by default the result's."""
    kind = kind or self.kind
    if isinstance(operand, Tensor):
      return self.cast(self.read(operand), kind)
    own = torch.tensor([operand], dtype=DTYPES[kind]).view(torch.uint8).tolist()
    return np.array(self._load(Cell(0, 0, int.from_bytes(own, "little"), kind)), object)

  def cast(self, values: Values, kind: type[Value]) -> Values:
    """Return values, all of one kind, as numbers of another."""
    own: Any = type(values.flat[0]) if values.size else kind
    check(own is kind or (own, kind) in CONVERSIONS)
    for op in CONVERSIONS[own, kind] if own is not kind else ():
      values = self.node(op, Word if op == "neg" else kind, values)
    return values

  def read(self, tensor: Tensor) -> Values:
    """Return the values of a tensor."""
    cells, shape = self._cells(tensor)
    return np.array([self._load(cell) for cell in cells], object).reshape(shape)

  def write(self, tensor: Tensor, values: Values) -> None:
    """Let a tensor have values of its kind."""
    cells, shape = self._cells(tensor)
    for cell, value in zip(cells, np.broadcast_to(values, shape).ravel(), strict=True):
      self._held[cell[:3]] = self._written[cell] = value

  def check(self) -> None:
    """Raise UnfitError if numbers of a memory that is written may overlap, for any two rows."""
    for memory in {cell.memory for cell in self._written}:
      cells = [own for own in {*self._loaded, *self._written} if own.memory == memory]
      cells.sort(key=lambda own: own.offset)
      begin, size = cells[0].offset, DTYPES[cells[0].kind].itemsize  # of a part with rows one after the other
      check(len({(cell.stride, cell.kind) for cell in cells}) == 1)
      for cell in cells:
        if cell.offset - begin >= self.count * cell.stride:
          begin = cell.offset
        check(cell.offset - begin + size <= cell.stride)

  def traced(self, lost: set[int]) -> Program:
    """Return the program, which writes what is not in `lost` memory; where few rows change, in these."""
    picks = {own.result.name: own.args for own in self.program.body if own.op == "pick"}
    kept: list[tuple[Any, Cell, Value]] = []
    for cell, value in self._written.items():
      mask, a, b = picks.get(value.name, (True, None, None))
      before = self._loaded.get(cell, self)
      if before is a:
        kept.append((self.program.op("not", Mask, mask), cell, b))
      else:
        kept.append((mask, cell, a) if before is b else (True, cell, value))
    for _, group in groupby((own for own in kept if own[1].memory not in lost), lambda own: id(own[0])):
      parts = [*group]
      with self.program.when_any(parts[0][0]):
        for mask, cell, value in parts:
          self.program.keep(self.cells[cell], cell.stride, value, mask)
    return self.program

  def _cells(self, tensor: Tensor) -> tuple[list[Cell], list[int]]:
    """Return the cells of a tensor, in order, and its shape with 1 in place of its rows."""
    row, size = row_dimension(tensor, self.count), tensor.element_size()
    check(tensor.dtype in KINDS and tensor.numel() <= MOST * (1 if row is None else self.count))
    shape = [1 if dim == row else length for dim, length in enumerate(tensor.shape)]
    steps = np.array(tensor.stride(), np.int64).reshape(-1, *[1] * tensor.ndim)
    offsets = (tensor.storage_offset() + (np.indices(shape) * steps).sum(0)) * size
    place = tensor.untyped_storage().data_ptr(), 0 if row is None else tensor.stride(row) * size
    return [Cell(*place, offset, KINDS[tensor.dtype]) for offset in offsets.ravel().tolist()], shape

  def _load(self, cell: Cell) -> Value:
    """Return what a cell holds; a 32-bit integer may be half of one of 64 bits."""
    if not cell.memory:
      return self.program.fetch(cell.kind, self.cells[cell], 0)
    value, whole = self._held.get(cell[:3]), self._held.get((*cell[:2], cell.offset - 4))
    if cell.kind is Word and isinstance(value, Long):
      return self.program.op("to_M", Word, value)
    if cell.kind is Word and isinstance(whole, Long):
      return self.program.op("high", Word, whole)
    if value is None:
      self._loaded[cell] = self._held[cell[:3]] = value = self.program.fetch(
        cell.kind, self.cells[cell], cell.stride
      )
    check(isinstance(value, cell.kind))
    return value


def row_dimension(tensor: Tensor, rows: int) -> int | None:
  """Return the dimension of a tensor's rows; None if it has none; raise UnfitError if it could be several."""
  found = [dim for dim, length in enumerate(tensor.shape) if length == rows]
  check(len(found) <= 1)
  return found[0] if found else None


def add(rows: Rows, call: Call) -> None:
  """Add what an operation does to that of others; raise UnfitError if rows cannot express it."""
  name, result = re.match(r"aten\.(\w+?)_?\.", str(call.operation)), call.result
  check(name and name[1] in OPERATIONS and isinstance(result, Tensor) and result.dtype in KINDS)
  check(row_dimension(result, rows.count) is not None)
  rows.call, rows.kind = call, KINDS[result.dtype]
  values = OPERATIONS[name[1]](rows, *call.args)  # type: ignore[index]
  if values is not None:
    rows.write(result, rows.cast(values, rows.kind))


def _apply(op: str, *kinds: type[Value], result: type[Value] | None = None) -> Callable[..., Values]:
  """Return what applies an operation to operands, in the kind in which torch does if that is one of some."""

  def apply(rows: Rows, *operands: Operand) -> Values:
    kind, options = KINDS.get(torch.result_type(operands[0], operands[-1])), rows.call.kwargs
    check(kind in kinds and options.keys() <= {"alpha", "out"} and options.get("alpha", 1) == 1)
    check(op not in {"left", "right"} or isinstance(operands[1], int))
    kind = Scalar if op == "div" and kind in INTEGERS else kind
    assert kind
    return rows.node(op, result or kind, *(rows.get(own, kind) for own in operands))

  return apply


def _logical(op: str) -> Callable[..., Values]:
  return lambda rows, *operands: rows.node(op, Mask, *(rows.get(own, Mask) for own in operands))


def _square(rows: Rows, x: Tensor, power: Operand = 2) -> Values:
  check(not isinstance(power, Tensor) and power == 2 and KINDS.get(x.dtype) is rows.kind)
  return _multiply(rows, x, x)


def _where(rows: Rows, mask: Tensor, a: Operand, b: Operand) -> Values:
  return rows.pick(rows.get(mask, Mask), rows.get(a), rows.get(b))


def _clamp(rows: Rows, x: Tensor, low: Operand | None = None, high: Operand | None = None) -> Values:
  value = rows.get(x)
  for bound, order in ((low, 1), (high, -1)):
    if bound is not None:
      check(rows.kind in FLOATS and KINDS.get(torch.result_type(x, bound)) is rows.kind)
      limit = rows.get(bound)
      if isinstance(bound, Tensor):  # which may be nan, and so may the value
        within, nan = (
          rows.node("less", Mask, *[limit, value][::order]),
          rows.node("differ", Mask, value, value),
        )
        value = rows.pick(rows.node("or", Mask, within, nan), value, limit)
      else:
        value = rows.pick(rows.node("less", Mask, *[value, limit][::order]), limit, value)
  return value


def _nan_to_num(rows: Rows, x: Tensor, *new: Operand) -> Values:
  check(rows.kind in FLOATS and len(new) == 3 and None not in new)
  value = rows.get(x)
  for limit, own in zip((np.inf, -np.inf), new[1:], strict=True):
    value = rows.pick(rows.node("equal", Mask, value, rows.get(limit)), rows.get(own), value)
  return rows.pick(rows.node("differ", Mask, value, value), rows.get(new[0]), value)


def _clone(rows: Rows, source: Tensor) -> Values:
  check(rows.call.kwargs.keys() <= CREATION)
  return rows.read(source)


def _cat(rows: Rows, parts: Sequence[Tensor], dim: int = 0) -> Values:
  dim %= rows.call.result.ndim
  check(dim != row_dimension(rows.call.result, rows.count))
  return np.concatenate([rows.get(part) for part in parts if part.shape != (0,)], dim)


def _sum(rows: Rows, x: Tensor, dims: Sequence[int] = (), keepdim: bool = False) -> Values:
  row = row_dimension(x, rows.count)
  check(dims and len(dims) == 1 and row not in {None, dims[0] % x.ndim} and not rows.call.kwargs.get("dtype"))
  if rows.kind in FLOATS:
    check(KINDS.get(x.dtype) is rows.kind and x.stride(row) == 1 and x.shape[dims[0]] < CASCADE**4)
    check(rows.count % SIDE_BY_SIDE == 0)
  total = _cascade(rows, [*np.moveaxis(rows.get(x), dims[0], 0)])
  return np.expand_dims(total, dims[0]) if keepdim else total


def _cascade(rows: Rows, terms: list[Values]) -> Values:
  """Return the sum of terms in torch's order: that of those left over first, then those of whole levels."""
  levels: list[Values] = []
  while True:
    whole = len(terms) // CASCADE * CASCADE
    levels.append(_total(rows, terms[whole:]))
    if not whole:
      return _total(rows, levels)
    terms = [_total(rows, terms[i : i + CASCADE]) for i in range(0, whole, CASCADE)]


def _total(rows: Rows, terms: list[Values]) -> Values:
  total = rows.get(0)
  for term in terms:
    total = rows.node("add", rows.kind, total, term)
  return total


NUMBERS = (*FLOATS, *INTEGERS)
LOGIC = {"and": "both", "or": "either", "xor": "one"}
_subtract, _multiply, _divide = (_apply(op, *NUMBERS) for op in ("sub", "mul", "div"))
_less, _most = (_apply(op, *NUMBERS, result=Mask) for op in ("less", "most"))
# By name, whether they write to their first argument or not. They give values, or None if they write nothing.
OPERATIONS: dict[str, Callable[..., Values | None]] = {
  "add": _apply("add", *NUMBERS),
  "sub": _subtract,
  "mul": lambda rows, a, b: (_logical("both") if rows.kind is Mask else _multiply)(rows, a, b),
  "div": _divide,
  "rsub": lambda rows, a, b, alpha=1: _subtract(rows, b, a) if alpha == 1 else check(False),
  "reciprocal": lambda rows, x: _divide(rows, 1.0, x),
  **dict.fromkeys(("pow", "square"), _square),
  "lt": _less,
  "le": _most,
  "gt": lambda rows, a, b: _less(rows, b, a),
  "ge": lambda rows, a, b: _most(rows, b, a),
  **{name: _apply(op, *NUMBERS, Mask, result=Mask) for name, op in (("eq", "equal"), ("ne", "differ"))},
  **{f"bitwise_{name}": _apply(op, *INTEGERS, Mask) for name, op in LOGIC.items()},
  **{f"logical_{name}": _logical(op) for name, op in LOGIC.items()},
  "logical_not": _logical("invert"),
  "bitwise_not": _apply("invert", *INTEGERS, Mask),
  **{name: _apply(op, *FLOATS) for name, op in (("neg", "neg"), ("abs", "size"), ("floor", "whole"))},
  **{name: _apply(op, *INTEGERS) for name, op in (("__rshift_", "right"), ("__lshift_", "left"))},
  "where": _where,
  "masked_fill": lambda rows, x, mask, value: _where(rows, mask, value, x),
  **dict.fromkeys(("clamp", "clamp_min", "maximum"), _clamp),
  **dict.fromkeys(("clamp_max", "minimum"), lambda rows, x, high: _clamp(rows, x, None, high)),
  "nan_to_num": _nan_to_num,
  "copy": lambda rows, _, source, *__: rows.read(source),
  **dict.fromkeys(("clone", "_to_copy"), _clone),
  **dict.fromkeys(("zero", "zeros_like", "new_zeros"), lambda rows, *_: rows.get(0)),
  **dict.fromkeys(("ones_like", "new_ones"), lambda rows, *_: rows.get(1)),
  **dict.fromkeys(("fill", "full_like", "new_full"), lambda rows, *args: rows.get(args[-1])),
  "empty_like": lambda *_: None,
  "cat": _cat,
  "stack": lambda rows, parts, dim=0: np.stack([*map(rows.get, parts)], dim % rows.call.result.ndim),
  "sum": _sum,
}
