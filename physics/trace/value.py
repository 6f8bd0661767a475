"""Traced values: scalars, masks, words and indices; their arithmetic records itself in a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from physics.trace.statement import CHOICE, Value, refusal

Number = Union["Scalar", float]
Truth = Union["Mask", bool]
Integer = Union["Index", int]
# Instead of an if on indices, which are the same in all lanes.
OF_GROUP = f"when_equal(a, b) and when_less(a, b) for a guarded block; between lanes {CHOICE}"


class Scalar(Value):
  """A float per lane."""

  __slots__ = ()

  def __add__(self, other: Number) -> Number:
    return self if _is(other, 0.0) else self.program.op("add", Scalar, self, other)

  def __radd__(self, other: float) -> Number:
    return self + other

  def __sub__(self, other: Number) -> Number:
    if other is self:
      return 0.0
    return self if _is(other, 0.0) else self.program.op("sub", Scalar, self, other)

  def __rsub__(self, other: float) -> Number:
    return -self if _is(other, 0.0) else self.program.op("sub", Scalar, other, self)

  def __mul__(self, other: Number) -> Number:
    if _is(other, 0.0):
      return 0.0
    if _is(other, 1.0):
      return self
    return -self if _is(other, -1.0) else self.program.op("mul", Scalar, self, other)

  def __rmul__(self, other: float) -> Number:
    return self * other

  def __truediv__(self, other: Number) -> Number:
    return self.program.op("div", Scalar, self, other) if isinstance(other, Scalar) else self * (1.0 / other)

  def __rtruediv__(self, other: float) -> Number:
    return 0.0 if _is(other, 0.0) else self.program.op("div", Scalar, other, self)

  def __neg__(self) -> Scalar:
    return self.program.op("neg", Scalar, self)

  def __lt__(self, other: Number) -> Mask:
    return self.program.op("lt", Mask, self, other)

  def __gt__(self, other: Number) -> Mask:
    return self.program.op("lt", Mask, other, self)

  def __le__(self, other: Number) -> Mask:
    return self.program.op("le", Mask, self, other)

  def __ge__(self, other: Number) -> Mask:
    return self.program.op("le", Mask, other, self)


class Parameter(Scalar):
  """A number of the model that differs between environments: a row of the array `parameters`."""

  __slots__ = ("row",)
  row: int


class Mask(Value):
  """A truth value per lane."""

  __slots__ = ()

  def __and__(self, other: Truth) -> Truth:
    if isinstance(other, bool):
      return self if other else False
    return self.program.op("and", Mask, self, other)

  __rand__ = __and__

  def __or__(self, other: Truth) -> Truth:
    if isinstance(other, bool):
      return True if other else self
    return self.program.op("or", Mask, self, other)

  __ror__ = __or__

  def __invert__(self) -> Mask:
    return self.program.op("not", Mask, self)


class Double(Value):
  """A float64 per lane."""

  __slots__ = ()


class Long(Value):
  """An int64 per lane."""

  __slots__ = ()


class Word(Value):
  """Thirty-one bits per lane."""

  __slots__ = ()

  def bit(self, position: int) -> Mask:
    """Return whether the bit is set."""
    return self.program.op("bit", Mask, self, position)


class Index(Value):
  """An integer shared by the lane group."""

  __slots__ = ()
  __hash__ = None
  __bool__ = refusal("take the truth of {}", OF_GROUP)
  __eq__ = __ne__ = refusal("compare {} by == or !=", OF_GROUP)
  if not TYPE_CHECKING:  # a type checker rejects these itself
    __lt__ = __le__ = __gt__ = __ge__ = refusal("compare {} by < or >", OF_GROUP)

  def __add__(self, other: Integer) -> Index:
    if isinstance(other, int) and other == 0:
      return self
    return self.program.op("iadd", Index, self, _whole(other))

  __radd__ = __add__

  def __sub__(self, other: Integer) -> Index:
    return self.program.op("isub", Index, self, _whole(other))

  def __mul__(self, other: Integer) -> Index:
    if isinstance(other, int) and other == 1:
      return self
    return self.program.op("imul", Index, self, _whole(other))

  __rmul__ = __mul__


def _is(value: object, constant: float) -> bool:
  return not isinstance(value, Value) and value == constant


def _whole(other: Any) -> Integer:
  """Raise TypeError for a number that an index would truncate, on a GPU without an error."""
  if not isinstance(other, int | Index):
    words = "write program.table(values, index) for a number that follows from an index"
    raise TypeError(f"an index takes int and Index, not {type(other).__name__}; {words}")
  return other
