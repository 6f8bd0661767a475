"""Operations of torch on the numbers of a row, with the bits of torch's own.

Left out are those whose bits depend on a library, such as square roots, exponentials and sines, and sums of
many numbers. Which bits a nan has is left open.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gpurobot.device.calls import Call
from gpurobot.fusion.program import KINDS, Program, UnfitError, Values, row_dimension

Operand = Tensor | float | int | bool
FLOATS, INTEGERS = "fd", "li"
CONVERSIONS = {"bf", "bd", "bl", "bi", "if", "lf", "ld", "il", "fd", "df", "fb", "lb", "fh", "hf"}
# Torch adds up so many terms one after the other, then so many of these sums, and so on (multi_row_sum in
# ATen's SumKernel.cpp), for SIDE_BY_SIDE results at once; those that are left over have another order.
CASCADE, SIDE_BY_SIDE = 16, 64
CREATION = {"dtype", "layout", "device", "pin_memory", "memory_format", "non_blocking"}  # options of copies


def add(program: Program, call: Call) -> None:
  """Add what an operation does to a program; raise UnfitError if the program cannot express it."""
  name: str = call.operation._schema.name.removeprefix("aten::")  # type: ignore[union-attr]
  name = name if name.startswith("_") else name.rstrip("_")
  result = call.result
  if name not in OPERATIONS or not isinstance(result, Tensor) or result.dtype not in KINDS:
    raise UnfitError(name)
  if row_dimension(result, program.rows) is None:
    raise UnfitError(f"{name}: the result is not of rows")
  here = _Here(program, call)
  values = OPERATIONS[name](here, *call.args)
  if values is not None:
    program.write(result, here.cast(values, here.kind))


class _Here:
  """An operation's result and options, in the program that it becomes part of."""

  def __init__(self, program: Program, call: Call) -> None:
    self.program, self.kwargs, self.result = program, call.kwargs, call.result
    self.kind = KINDS[call.result.dtype]

  def node(self, op: str, kind: str, *parts: Values) -> Values:
    """Return an operation on each number of values, in their common shape."""
    shape = np.broadcast_shapes(*(part.shape for part in parts))
    columns = [np.broadcast_to(part, shape).ravel().tolist() for part in parts]
    return _like([self.program.node(op, kind, *args) for args in zip(*columns, strict=True)], shape)

  def get(self, operand: Operand, kind: str) -> Values:
    """Return an operand's values as numbers of a kind."""
    if isinstance(operand, Tensor):
      return self.cast(self.program.read(operand), kind)
    return self.program.number(operand, kind)

  def cast(self, values: Values, kind: str) -> Values:
    """Return values as numbers of a kind."""
    return _like([self._cast(value, kind) for value in values.ravel().tolist()], values.shape)

  def _cast(self, value: int, kind: str) -> int:
    own = self.program.nodes[value].kind
    if own == kind:
      return value
    self.check(own + kind in CONVERSIONS)
    return self.program.node(f"{own}2{kind}", kind, value)

  def common(self, *operands: Operand) -> str:
    """Return the kind in which torch computes with operands."""
    dtype = torch.result_type(operands[0], operands[-1])
    self.check(dtype in KINDS and dtype is not torch.bfloat16)
    return KINDS[dtype]

  @staticmethod
  def check(fits: bool) -> None:
    """Raise UnfitError if an operation does not fit."""
    if not fits:
      raise UnfitError("another kind of operation")


def _like(values: Sequence[int], shape: tuple[int, ...]) -> Values:
  return np.array(values, dtype=np.int64).reshape(shape)


def _arithmetic(op: str) -> Callable[..., Values]:
  def apply(here: _Here, a: Operand, b: Operand) -> Values:
    here.check(here.kwargs.get("alpha", 1) == 1 and here.kwargs.keys() <= {"alpha", "out"})
    kind = here.common(a, b)
    if op == "div" and kind not in FLOATS:
      kind = "f"
    if (op, kind) == ("mul", "b"):
      return here.node("and", "b", here.get(a, kind), here.get(b, kind))
    here.check(kind in FLOATS + INTEGERS)
    return here.node(op, kind, here.get(a, kind), here.get(b, kind))

  return apply


def _rsub(here: _Here, a: Operand, b: Operand, alpha: float = 1) -> Values:
  here.check(alpha == 1)
  return _arithmetic("sub")(here, b, a)


def _reciprocal(here: _Here, x: Tensor) -> Values:
  return _arithmetic("div")(here, 1.0, x)


def _square(here: _Here, x: Tensor, exponent: Operand = 2) -> Values:
  here.check(not isinstance(exponent, Tensor) and exponent == 2 and KINDS.get(x.dtype) == here.kind)
  return _arithmetic("mul")(here, x, x)


def _comparison(op: str) -> Callable[..., Values]:
  def apply(here: _Here, a: Operand, b: Operand) -> Values:
    kind = here.common(a, b)
    if kind != "b":
      return here.node(op, "b", here.get(a, kind), here.get(b, kind))
    here.check(op in {"eq", "ne"})
    differs = here.node("xor", "b", here.get(a, kind), here.get(b, kind))
    return differs if op == "ne" else here.node("not", "b", differs)

  return apply


def _bitwise(op: str) -> Callable[..., Values]:
  def apply(here: _Here, a: Operand, b: Operand) -> Values:
    kind = here.common(a, b)
    here.check(kind in INTEGERS + "b")
    return here.node(op, kind, here.get(a, kind), here.get(b, kind))

  return apply


def _logical(op: str) -> Callable[..., Values]:
  def apply(here: _Here, *operands: Tensor) -> Values:
    return here.node(op, "b", *(here.get(own, "b") for own in operands))

  return apply


def _unary(op: str, kinds: str) -> Callable[..., Values]:
  def apply(here: _Here, x: Tensor) -> Values:
    here.check(here.kind in kinds)
    return here.node(op, here.kind, here.get(x, here.kind))

  return apply


def _shift(op: str) -> Callable[..., Values]:
  def apply(here: _Here, x: Tensor, count: Operand) -> Values:
    here.check(isinstance(count, int) and here.kind in INTEGERS)
    return here.node(op, here.kind, here.get(x, here.kind), here.get(count, here.kind))

  return apply


def _where(here: _Here, condition: Tensor, a: Operand, b: Operand) -> Values:
  return here.node(
    "select", here.kind, here.get(condition, "b"), here.get(a, here.kind), here.get(b, here.kind)
  )


def _masked_fill(here: _Here, x: Tensor, mask: Tensor, value: Operand) -> Values:
  return _where(here, mask, value, x)


def _clamp(here: _Here, x: Tensor, low: Operand | None = None, high: Operand | None = None) -> Values:
  here.check(here.kind in FLOATS)
  value = here.get(x, here.kind)
  for bound, within, beyond in ((low, "gt", "lt"), (high, "lt", "gt")):
    if bound is not None:
      here.check(here.common(x, bound) == here.kind)
      limit = here.get(bound, here.kind)
      if isinstance(bound, Tensor):
        value = _extreme(here, within, value, limit)
      else:
        value = here.node("select", here.kind, here.node(beyond, "b", value, limit), limit, value)
  return value


def _clamp_max(here: _Here, x: Tensor, high: Operand) -> Values:
  return _clamp(here, x, None, high)


def _extreme(here: _Here, op: str, a: Values, b: Values) -> Values:
  """Return a where it is nan or beats b, otherwise b, which may be nan."""
  first = here.node("or", "b", here.node(op, "b", a, b), here.node("ne", "b", a, a))
  return here.node("select", here.kind, first, a, b)


def _of_two(op: str) -> Callable[..., Values]:
  def apply(here: _Here, a: Tensor, b: Tensor) -> Values:
    here.check(here.kind in FLOATS)
    return _extreme(here, op, here.get(a, here.kind), here.get(b, here.kind))

  return apply


def _nan_to_num(
  here: _Here, x: Tensor, nan: float | None = None, above: float | None = None, below: float | None = None
) -> Values:
  here.check(here.kind in FLOATS)
  value, new = here.get(x, here.kind), {np.inf: above, -np.inf: below}
  found = [(here.node("eq", "b", value, here.get(limit, here.kind)), own) for limit, own in new.items()]
  for where, own in [*found, (here.node("ne", "b", value, value), nan)]:
    if own is None:
      raise UnfitError("the largest number")
    value = here.node("select", here.kind, where, here.get(own, here.kind), value)
  return value


def _copy(here: _Here, _: Tensor, source: Tensor, non_blocking: bool = False) -> Values:  # noqa: ARG001
  return here.program.read(source)


def _clone(here: _Here, source: Tensor) -> Values:
  here.check(here.kwargs.keys() <= CREATION)
  return here.program.read(source)


def _constant(value: float) -> Callable[..., Values]:
  return lambda here, *_: here.get(value, here.kind)


def _fill(here: _Here, _: Tensor, value: Operand) -> Values:
  return here.get(value, here.kind)


def _empty(*_: Any) -> None:
  """Write nothing."""


def _cat(here: _Here, parts: Sequence[Tensor], dim: int = 0) -> Values:
  dim %= here.result.ndim
  here.check(dim != row_dimension(here.result, here.program.rows))
  return np.concatenate([here.get(part, here.kind) for part in parts if part.shape != (0,)], dim)


def _stack(here: _Here, parts: Sequence[Tensor], dim: int = 0) -> Values:
  return np.stack([here.get(part, here.kind) for part in parts], dim % here.result.ndim)


def _sum(here: _Here, x: Tensor, dims: Sequence[int] | None = None, keepdim: bool = False) -> Values:
  row = row_dimension(x, here.program.rows)
  here.check(dims is not None and len(dims) == 1 and row is not None and here.kwargs.get("dtype") is None)
  assert dims is not None
  assert row is not None
  dim = dims[0] % x.ndim
  here.check(dim != row)
  if here.kind in FLOATS:
    here.check(KINDS.get(x.dtype) == here.kind and x.stride(row) == 1 and x.shape[dim] < CASCADE**4)
    here.check(here.program.rows % SIDE_BY_SIDE == 0)
  total = _cascade(here, [*np.moveaxis(here.get(x, here.kind), dim, 0)])
  return np.expand_dims(total, dim) if keepdim else total


def _cascade(here: _Here, terms: list[Values]) -> Values:
  """Return the sum of terms in torch's order: that of those left over first, then those of whole levels."""
  whole = len(terms) // CASCADE * CASCADE
  levels = [terms[whole:]]
  level = [_sequence(here, terms[i : i + CASCADE]) for i in range(0, whole, CASCADE)]
  while level:
    whole = len(level) // CASCADE * CASCADE
    levels.append(level[whole:])
    level = [_sequence(here, level[i : i + CASCADE]) for i in range(0, whole, CASCADE)]
  return _sequence(here, [_sequence(here, own) for own in levels[1:]], _sequence(here, levels[0]))


def _sequence(here: _Here, terms: list[Values], total: Values | None = None) -> Values:
  total = here.get(0, here.kind) if total is None else total
  for term in terms:
    total = here.node("add", here.kind, total, term)
  return total


# By name, whether they write to their first argument or not. They give values, or None if they write nothing.
OPERATIONS: dict[str, Callable[..., Values | None]] = {
  **{name: _arithmetic(name) for name in ("add", "sub", "mul", "div")},
  "rsub": _rsub,
  "reciprocal": _reciprocal,
  "pow": _square,
  "square": _square,
  **{name: _comparison(name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
  **{f"bitwise_{op}": _bitwise(op) for op in ("and", "or", "xor")},
  **{f"logical_{op}": _logical(op) for op in ("and", "or", "xor", "not")},
  "bitwise_not": _unary("not", INTEGERS + "b"),
  **{op: _unary(op, FLOATS) for op in ("neg", "abs", "floor")},
  "__rshift__": _shift("shr"),
  "__lshift__": _shift("shl"),
  "where": _where,
  "masked_fill": _masked_fill,
  "clamp": _clamp,
  "clamp_min": _clamp,
  "clamp_max": _clamp_max,
  "maximum": _of_two("gt"),
  "minimum": _of_two("lt"),
  "nan_to_num": _nan_to_num,
  "copy": _copy,
  "clone": _clone,
  "_to_copy": _clone,
  **dict.fromkeys(("zero", "zeros_like", "new_zeros"), _constant(0)),
  **dict.fromkeys(("ones_like", "new_ones"), _constant(1)),
  **dict.fromkeys(("fill", "full_like", "new_full"), _fill),
  "empty_like": _empty,
  "cat": _cat,
  "stack": _stack,
  "sum": _sum,
}
