"""Functions of traced or constant numbers; constants fold while tracing."""

import math
from collections.abc import Callable
from typing import Any

from physics.trace.value import Number, Scalar, Truth, Word


def number(value: Any) -> Number:
  """Return a number of the model for the program: a float, or a traced value of a varied field."""
  return value if isinstance(value, Scalar) else float(value)


def is_zero(value: Any) -> bool:
  """Return whether a number of the model is known to be zero; a traced value never is."""
  return not isinstance(value, Scalar) and float(value) == 0.0


def is_finite(value: Number) -> bool:
  """Return whether a number is not known to be infinite; a traced value counts as finite."""
  return isinstance(value, Scalar) or math.isfinite(value)


def where(mask: Truth, a: Number, b: Number) -> Number:
  """Return `a` where the mask holds, else `b`."""
  if isinstance(mask, bool):
    return a if mask else b
  if not isinstance(a, Scalar) and not isinstance(b, Scalar) and a == b:
    return a
  return mask.program.op("where", Scalar, mask, a, b)


def has_bit(word: Word | int, position: int) -> Truth:
  """Return whether a bit of a word is set."""
  return bool(word >> position & 1) if isinstance(word, int) else word.bit(position)


def negate(mask: Truth) -> Truth:
  """Return where the mask does not hold."""
  return not mask if isinstance(mask, bool) else ~mask


def minimum(a: Number, b: Number) -> Number:
  """Return the lesser value."""
  return _call("min", min, a, b)


def maximum(a: Number, b: Number) -> Number:
  """Return the greater value."""
  return _call("max", max, a, b)


def clip(x: Number, low: Number, high: Number) -> Number:
  """Return the value limited to an interval; nan stays nan, which depends on the order of the arguments."""
  return minimum(high, maximum(low, x))


def absolute(x: Number) -> Number:
  """Return the magnitude."""
  return _call("abs", abs, x)


def sqrt(x: Number) -> Number:
  """Return the square root."""
  return _call("sqrt", math.sqrt, x)


def sin(x: Number) -> Number:
  """Return the sine of an angle [rad]."""
  return _call("sin", math.sin, x)


def cos(x: Number) -> Number:
  """Return the cosine of an angle [rad]."""
  return _call("cos", math.cos, x)


def atan2(y: Number, x: Number) -> Number:
  """Return the angle [rad] of the point (x, y); a call per lane, for rare use."""
  return _call("atan2", math.atan2, y, x)


def exp(x: Number) -> Number:
  """Return e to the power x; a call per lane, for rare use."""
  return _call("exp", math.exp, x)


def floor(x: Number) -> Number:
  """Return the greatest whole number that is not above x."""
  return _call("floor", lambda value: float(math.floor(value)), x)


def square(x: Number) -> Number:
  """Return x^2."""
  return x * x


def power(x: Number, exponent: Number) -> Number:
  """Return x to a power >= 1; small constant integers multiply, others are a call per lane."""
  if isinstance(exponent, Scalar) or exponent != int(exponent) or exponent > 8:
    return _call("pow", math.pow, x, exponent)
  result: Number = 1.0
  for _ in range(int(exponent)):
    result = result * x
  return result


def _call(op: str, fold: Callable[..., float], *args: Number) -> Number:
  for arg in args:
    if isinstance(arg, Scalar):
      return arg.program.op(op, Scalar, *args)
  return fold(*args)
