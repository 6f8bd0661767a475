"""Spatial (6D) algebra on traced scalars: motions, forces, inertias.

Spatial quantities have their angular part first. They are about the reference point of the body's tree, in
world axes (Featherstone 2008, chapter 2). Everything is immutable; components are `Scalar`s or Python floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from physics.algebra.vector import (  # noqa: F401 (one vocabulary)
  AXES,
  FLAT,
  MINVAL,
  ZERO,
  Matrix,
  Quaternion,
  Vector,
  constant,
  cross,
  dot,
  select,
  total,
  vector,
)
from physics.trace.trace import Number


@dataclass(frozen=True)
class Motion:
  """A spatial velocity or acceleration [6]: the angular part, and the linear part at the reference point."""

  angular: Vector
  linear: Vector

  def __add__(self, other: Motion) -> Motion:
    return Motion(self.angular + other.angular, self.linear + other.linear)

  def __sub__(self, other: Motion) -> Motion:
    return Motion(self.angular - other.angular, self.linear - other.linear)

  def __mul__(self, factor: Number) -> Motion:
    return Motion(self.angular * factor, self.linear * factor)

  def at(self, point: Vector) -> Vector:
    """Return the linear part at another point, given relative to the reference."""
    return self.linear + cross(self.angular, point)

  def about(self, point: Vector) -> Motion:
    """Return the motion about another point, given relative to the reference."""
    return Motion(self.angular, self.at(point))

  @staticmethod
  def of(values: Sequence[Number]) -> Motion:
    """Make a motion of its components [6]."""
    return Motion(Vector(*values[:3]), Vector(*values[3:]))

  @property
  def components(self) -> tuple[Number, ...]:
    """Six numbers, angular first."""
    return (*self.angular, *self.linear)


@dataclass(frozen=True)
class Force:
  """A spatial force [6]: torque [N m] about the reference point and force [N]."""

  torque: Vector
  force: Vector

  def __add__(self, other: Force) -> Force:
    return Force(self.torque + other.torque, self.force + other.force)

  def __mul__(self, factor: Number) -> Force:
    return Force(self.torque * factor, self.force * factor)

  @staticmethod
  def at(point: Vector, force: Vector) -> Force:
    """Return a force that acts at a point given relative to the reference."""
    return Force(cross(point, force), force)

  def moved(self, point: Vector) -> Force:
    """Return a force about the reference that is given about a point, relative to the reference."""
    return Force(self.torque + cross(point, self.force), self.force)

  def power(self, motion: Motion) -> Number:
    """Return the scalar product with a motion."""
    return dot(self.torque, motion.angular) + dot(self.force, motion.linear)

  @staticmethod
  def of(values: Sequence[Number]) -> Force:
    """Make a force of its components [6]."""
    return Force(Vector(*values[:3]), Vector(*values[3:]))

  @property
  def components(self) -> tuple[Number, ...]:
    """Six numbers, torque first."""
    return (*self.torque, *self.force)


STILL = Motion(ZERO, ZERO)
NO_FORCE = Force(ZERO, ZERO)


def cross_motion(a: Motion, b: Motion) -> Motion:
  """Return the rate of change of `b` moving with velocity `a` (Featherstone 2008, equation 2.31)."""
  return Motion(cross(a.angular, b.angular), cross(a.linear, b.angular) + cross(a.angular, b.linear))


def symmetric(xx: Number, yy: Number, zz: Number, xy: Number, xz: Number, yz: Number) -> Matrix:
  """Make a symmetric matrix [3, 3]."""
  return Matrix(Vector(xx, xy, xz), Vector(xy, yy, yz), Vector(xz, yz, zz))


@dataclass(frozen=True)
class Inertia:
  """A spatial inertia about the reference: mass [kg], first moment [kg m], rotational inertia [kg m^2]."""

  mass: Number
  moment: Vector
  rotational: Matrix

  def __add__(self, other: Inertia) -> Inertia:
    rotational = symmetric(
      *(a + b for a, b in zip(_six(self.rotational), _six(other.rotational), strict=True))
    )
    return Inertia(self.mass + other.mass, self.moment + other.moment, rotational)

  def __matmul__(self, motion: Motion) -> Force:
    return Force(
      self.rotational @ motion.angular + cross(self.moment, motion.linear),
      motion.linear * self.mass - cross(self.moment, motion.angular),
    )

  def force(self, velocity: Motion, acceleration: Motion) -> Force:
    """Return the force that accelerates a body in motion: I a + v x I v (Featherstone 2008, equation 2.72).

    It is summed as Newton and Euler have it, from the acceleration of the body's point at the reference. The
    product of velocity and momentum would leave the rounding of a fast, small body's kinetic energy.
    """
    turning, moment = velocity.angular, self.moment
    at_reference = acceleration.linear + cross(turning, velocity.linear)
    swing = cross(acceleration.angular, moment) + cross(turning, cross(turning, moment))
    gyroscopic = cross(turning, self.rotational @ turning)
    return Force(
      self.rotational @ acceleration.angular + gyroscopic + cross(moment, at_reference),
      at_reference * self.mass + swing,
    )

  @staticmethod
  def of(values: Sequence[Number]) -> Inertia:
    """Make an inertia of its components [10]."""
    return Inertia(values[0], Vector(*values[1:4]), symmetric(*values[4:]))

  @property
  def components(self) -> tuple[Number, ...]:
    """Mass, first moment and rotational inertia: ten numbers."""
    return (self.mass, *self.moment, *self.six)

  @property
  def six(self) -> tuple[Number, ...]:
    """Entries xx, yy, zz, xy, xz, yz of the rotational inertia."""
    return _six(self.rotational)

  def about(self, point: Vector) -> Inertia:
    """Return the inertia about another point, given relative to the reference (parallel axes)."""
    moment, (x, y, z) = self.moment - point * self.mass, point
    u, v, w = self.moment + moment
    xx, yy, zz = x * u, y * v, z * w
    xy, xz, yz = (x * v + y * u) * 0.5, (x * w + z * u) * 0.5, (y * w + z * v) * 0.5
    shift = (-(yy + zz), -(xx + zz), -(xx + yy), xy, xz, yz)
    six = (a + b for a, b in zip(self.six, shift, strict=True))
    return Inertia(self.mass, moment, symmetric(*six))

  def moved(self, point: Vector) -> Inertia:
    """Return an inertia about the reference that is given about a point, relative to the reference."""
    return self.about(-point)

  def as_stiffness(self) -> Stiffness:
    """Return the same 6 x 6 matrix, without its structure."""
    m, (x, y, z) = self.mass, self.moment
    coupling = Matrix(Vector(0.0, -z, y), Vector(z, 0.0, -x), Vector(-y, x, 0.0))
    return Stiffness(self.rotational, coupling, symmetric(m, m, m, 0.0, 0.0, 0.0))

  @staticmethod
  def of_body(mass: Number, center: Vector, rotational: Matrix) -> Inertia:
    """Return a body's inertia about the reference from the one about its centre of mass (parallel axes)."""
    h = center * mass
    xx, yy, zz = (a * b for a, b in zip(h, center, strict=True))
    xy, xz, yz = h[0] * center[1], h[0] * center[2], h[1] * center[2]
    shift = (yy + zz, xx + zz, xx + yy, -xy, -xz, -yz)
    return Inertia(mass, h, symmetric(*(a + b for a, b in zip(_six(rotational), shift, strict=True))))


@dataclass(frozen=True)
class Stiffness:
  """A symmetric 6 x 6 matrix from motions to forces: the Hessian of a body's contacts with the world."""

  angular: Matrix
  coupling: Matrix
  linear: Matrix

  @staticmethod
  def at(point: Vector, linear: Matrix, coupling: Matrix = FLAT, angular: Matrix = FLAT) -> Stiffness:
    """Return the stiffness about the reference, from its blocks about a point relative to the reference."""
    columns = linear.transposed
    moved = Matrix(*(cross(point, columns[i]) for i in range(3))).transposed
    turned = Matrix(*(cross(point, moved[i]) for i in range(3)))
    twisted = Matrix(*(cross(point, coupling[i]) for i in range(3)))
    return Stiffness(angular + turned + twisted + twisted.transposed, coupling + moved, linear)

  def moved(self, point: Vector) -> Stiffness:
    """Return a stiffness about the reference that is given about a point, relative to the reference."""
    return Stiffness.at(point, self.linear, self.coupling, self.angular)

  @staticmethod
  def of(values: Sequence[Number]) -> Stiffness:
    """Make a stiffness of its 21 components."""
    coupling = Matrix(*(Vector(*values[6 + 3 * i : 9 + 3 * i]) for i in range(3)))
    return Stiffness(symmetric(*values[:6]), coupling, symmetric(*values[15:21]))

  @property
  def components(self) -> tuple[Number, ...]:
    """The 21 independent numbers."""
    return (*_six(self.angular), *(x for row in self.coupling for x in row), *_six(self.linear))

  @staticmethod
  def outer(a: Force, b: Force) -> Stiffness:
    """Return the product a b^T of parallel forces."""
    coupling = [x * y for x in a.torque for y in b.force]
    angular, linear = (_six_products(x, y) for x, y in ((a.torque, b.torque), (a.force, b.force)))
    return Stiffness.of([*angular, *coupling, *linear])

  def __add__(self, other: Stiffness) -> Stiffness:
    return Stiffness.of([a + b for a, b in zip(self.components, other.components, strict=True)])

  def __sub__(self, other: Stiffness) -> Stiffness:
    return Stiffness.of([a - b for a, b in zip(self.components, other.components, strict=True)])

  def __matmul__(self, motion: Motion) -> Force:
    return Force(
      self.angular @ motion.angular + self.coupling @ motion.linear,
      self.coupling.transposed @ motion.angular + self.linear @ motion.linear,
    )


def _six_products(a: Vector, b: Vector) -> list[Number]:
  return [a[i] * b[j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]


def _six(m: Matrix) -> tuple[Number, ...]:
  return (m[0][0], m[1][1], m[2][2], m[0][1], m[0][2], m[1][2])
