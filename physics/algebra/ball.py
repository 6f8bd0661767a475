"""The minimum of a convex quadratic function within a ball."""

from collections.abc import Sequence

from physics.algebra.sparse import SparseFactor, SparseMatrix
from physics.algebra.spatial import MINVAL, dot
from physics.trace.trace import Number, Program, Truth, maximum, sqrt, where

ITERATIONS = 10
ROUNDING = 1e-6  # pivot below which float32 takes A for singular, relative to the diagonal


def smallest_in_ball(
  program: Program, A: Sequence[Sequence[Number]], b: Sequence[Number], radius: Number
) -> list[Number]:
  """Return the x [n] of length at most `radius` that minimizes 1/2 x^T A x + b^T x.

  A [n, n] is positive semidefinite; if it is singular, x is zero. On the ball's surface x is -(A + s)^-1 b,
  with the s > 0 that gives it the right length; Newton's method for 1 / length, which is almost linear in s,
  rises to it from zero (Nocedal and Wright 2006, section 4.3).
  """
  shift = program.variable(0.0)
  is_regular: Truth = True
  for i, inverse in enumerate(_factor(A, 0.0).inverse):
    is_regular = is_regular & (inverse > 0.0) & (ROUNDING * maximum(A[i][i], MINVAL) * inverse < 1.0)
  with program.loop(ITERATIONS):
    factor = _factor(A, shift[0])
    x = factor.solve([-value for value in b])
    square = dot(x, x)
    length = sqrt(square)
    outside = is_regular & (length > radius)
    program.break_if_none(outside)
    step = square / maximum(dot(x, factor.solve(x)), MINVAL) * (length - radius) / maximum(radius, MINVAL)
    shift[0] = where(outside, shift[0] + step, shift[0])
  x = _factor(A, shift[0]).solve([-value for value in b])
  length = sqrt(dot(x, x))
  scale = where(length > radius, radius / maximum(length, MINVAL), 1.0)
  return [where(is_regular, value * scale, 0.0) for value in x]


def inverse_pivots(A: Sequence[Sequence[Number]]) -> list[Number]:
  """Return 1 over the pivots of A [n, n], eliminated from its first row on."""
  n = len(A)
  backwards = [[A[n - 1 - i][n - 1 - j] for j in range(n)] for i in range(n)]
  return _factor(backwards, 0.0).inverse[::-1]


def _factor(A: Sequence[Sequence[Number]], shift: Number) -> SparseFactor:
  """Return the factors of A + shift."""
  n = len(A)
  entries = {(i, j): A[i][j] + (shift if i == j else 0.0) for i in range(n) for j in range(i + 1)}
  return SparseMatrix(n, entries).factor()
