"""Vectors, matrices and quaternions on traced scalars; immutable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from physics.trace.trace import Number, Scalar, Truth, atan2, cos, number, sin, sqrt, where

MINVAL = 1e-15  # MuJoCo's mjMINVAL: the least divisor


def total(terms: Iterable[Number]) -> Number:
  """Return the sum, in order."""
  return reduce(add, terms, 0.0)


class Vector(tuple[Number, Number, Number]):
  """A vector [3], made as `Vector(x, y, z)`."""

  __slots__ = ()

  def __new__(cls, x: Number, y: Number, z: Number) -> Vector:
    """Make a vector of its components."""
    return super().__new__(cls, (x, y, z))

  @staticmethod
  def of(values: Sequence[Number]) -> Vector:
    """Make a vector of its components [3]."""
    return Vector(*values)

  @property
  def components(self) -> tuple[Number, ...]:
    """The three numbers."""
    return self

  def __add__(self, other: Vector) -> Vector:  # type: ignore[override]
    return Vector(*(a + b for a, b in zip(self, other, strict=True)))

  def __sub__(self, other: Vector) -> Vector:
    return Vector(*(a - b for a, b in zip(self, other, strict=True)))

  def __neg__(self) -> Vector:
    return Vector(*(-a for a in self))

  def __mul__(self, factor: Number) -> Vector:  # type: ignore[override]
    return Vector(*(a * factor for a in self))


ZERO = Vector(0.0, 0.0, 0.0)
AXES = (Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0))


def vector(values: Sequence[Number] | np.ndarray) -> Vector:
  """Make a vector of the model's numbers [3]; rounding residue (below 1e-12) becomes zero and folds."""
  return Vector(*(_clean(number(value)) for value in values))


def _clean(value: Number) -> Number:
  return 0.0 if isinstance(value, float) and abs(value) < 1e-12 else value


def constant(value: Number) -> float:
  """Return as a float a value that is known while tracing; TypeError for others."""
  if isinstance(value, Scalar):
    raise TypeError(f"{value.name} depends on the state")
  return float(value)


def select(mask: Truth, a: Vector, b: Vector) -> Vector:
  """Return `a` where the mask holds, else `b`."""
  return Vector(*(where(mask, x, y) for x, y in zip(a, b, strict=True)))


def dot(a: Iterable[Number], b: Iterable[Number]) -> Number:
  """Return the sum of products of two lists [n], in order (MuJoCo's `mju_dot`)."""
  return total(x * y for x, y in zip(a, b, strict=True))


def cross(a: Vector, b: Vector) -> Vector:
  """Return the vector product (MuJoCo's `mju_cross`)."""
  return Vector(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


class Matrix(tuple[Vector, Vector, Vector]):
  """A matrix [3, 3] of three rows; acts on vectors with `@`, on matrices by `times`."""

  __slots__ = ()

  def __new__(cls, x: Vector, y: Vector, z: Vector) -> Matrix:
    """Make a matrix of its rows."""
    return super().__new__(cls, (x, y, z))

  @staticmethod
  def of(values: Sequence[Number]) -> Matrix:
    """Make a matrix of its components [9], row by row."""
    return Matrix(*(Vector(*values[i : i + 3]) for i in (0, 3, 6)))

  @property
  def components(self) -> tuple[Number, ...]:
    """The nine numbers, row by row."""
    return tuple(x for row in self for x in row)

  @property
  def transposed(self) -> Matrix:
    """The transpose."""
    return Matrix(*(Vector(self[0][i], self[1][i], self[2][i]) for i in range(3)))

  def column(self, i: int) -> Vector:
    """Return a column."""
    return Vector(self[0][i], self[1][i], self[2][i])

  def __add__(self, other: Matrix) -> Matrix:  # type: ignore[override]
    return Matrix(*(a + b for a, b in zip(self, other, strict=True)))

  def __matmul__(self, other: Vector) -> Vector:
    return Vector(*(dot(row, other) for row in self))

  def times(self, other: Matrix) -> Matrix:
    """Return the matrix product."""
    columns = other.transposed
    return Matrix(*(Vector(*(dot(row, column) for column in columns)) for row in self))


FLAT = Matrix(ZERO, ZERO, ZERO)


@dataclass(frozen=True)
class Quaternion:
  """A rotation [4], (w, x, y, z), of unit length."""

  w: Number
  v: Vector

  @staticmethod
  def constant(values: Sequence[Number] | np.ndarray) -> Quaternion:
    """Make a rotation of the model's numbers [4]."""
    w = number(values[0])
    return Quaternion(1.0 if isinstance(w, float) and abs(w - 1) < 1e-12 else w, vector(values[1:]))

  @staticmethod
  def of(values: Sequence[Number]) -> Quaternion:
    """Make a rotation of its components [4]."""
    return Quaternion(values[0], Vector(*values[1:]))

  @staticmethod
  def about(axis: Vector, angle: Number) -> Quaternion:
    """Return the rotation by an angle [rad] about a unit axis (MuJoCo's `mju_axisAngle2Quat`)."""
    half = angle * 0.5
    return Quaternion(cos(half), axis * sin(half))

  @staticmethod
  def normalize(values: Sequence[Number]) -> Quaternion:
    """Return the unit quaternion along components [4]; the identity if they vanish (`mju_normalize4`)."""
    square = dot(values, values)
    vanishes = square < 1e-30
    scale = 1.0 / sqrt(where(vanishes, 1.0, square))
    w, x, y, z = values
    return Quaternion(
      where(vanishes, 1.0, w * scale), Vector(*(where(vanishes, 0.0, c * scale) for c in (x, y, z)))
    )

  def __mul__(self, other: Quaternion) -> Quaternion:
    return Quaternion(
      self.w * other.w - dot(self.v, other.v),
      other.v * self.w + self.v * other.w + cross(self.v, other.v),
    )

  @property
  def conjugate(self) -> Quaternion:
    """The inverse rotation (MuJoCo's `mju_negQuat`)."""
    return Quaternion(self.w, -self.v)

  @property
  def components(self) -> tuple[Number, ...]:
    """The four numbers w, x, y, z."""
    return (self.w, *self.v)

  def matrix(self) -> Matrix:
    """Return the rotation matrix (MuJoCo's `mju_quat2Mat`)."""
    w, (x, y, z) = self.w, self.v
    x2, y2, z2 = x * 2.0, y * 2.0, z * 2.0
    xx, xy, xz, yy, yz, zz = x * x2, x * y2, x * z2, y * y2, y * z2, z * z2
    wx, wy, wz = w * x2, w * y2, w * z2
    return Matrix(
      Vector(1.0 - (yy + zz), xy - wz, xz + wy),
      Vector(xy + wz, 1.0 - (xx + zz), yz - wx),
      Vector(xz - wy, yz + wx, 1.0 - (xx + yy)),
    )

  def rotation_vector(self) -> tuple[Vector, Number]:
    """Return the rotation's axis (zero for the identity) and its angle [rad] in [-pi, pi]."""
    length = sqrt(dot(self.v, self.v))
    vanishes = length < 1e-15
    axis = self.v * where(vanishes, 0.0, 1.0 / where(vanishes, 1.0, length))
    angle = atan2(length, self.w) * 2.0
    return axis, where(angle > np.pi, angle - 2.0 * np.pi, angle)
