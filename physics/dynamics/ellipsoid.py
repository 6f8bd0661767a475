"""Fluid forces on geoms that count as ellipsoids: added mass, drag, lift and viscous resistance.

Source: MuJoCo's manual, chapter Computation, section Fluid forces, Ellipsoid model. Like MuJoCo, the engine
leaves out the part of added mass that depends on the acceleration.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from physics.algebra.sparse import At
from physics.algebra.spatial import MINVAL, Force, Matrix, Motion, Vector, cross, dot, total, vector
from physics.dynamics.fluid import INTERACTION, ellipsoidal_geoms, has_mass, wet_bodies
from physics.dynamics.frame import GEOM, Frame, frame
from physics.dynamics.kinematics import Poses, dofs_above
from physics.model.model import Model
from physics.trace.trace import Number, maximum, minimum, number, power, sqrt

SPHERE, CAPSULE, CYLINDER = 2, 3, 5  # mjtGeom
BLUNT, SLENDER, ANGULAR, KUTTA, MAGNUS = range(INTERACTION + 1, 6)  # columns of `geom_fluid`
VIRTUAL_MASS, VIRTUAL_INERTIA = slice(6, 9), slice(9, 12)  # for density 1


@dataclass(frozen=True)
class Ellipsoid:
  """A geom in a fluid, in its own axes: forces by velocity, and their derivatives."""

  frame: Frame
  turn: Vector  # angular velocity [rad/s]
  flow: Vector  # velocity relative to the fluid [m/s]
  semiaxes: Vector  # [m]
  coefficients: list[Number]  # [12] (MuJoCo's `geom_fluid`)
  density: Number  # [kg/m^3]
  viscosity: Number  # [Pa s]

  @property
  def body(self) -> int:
    """The body of the geom."""
    return self.frame.body

  def along(self, motion: Motion) -> list[Number]:
    """Return the velocities [6] of a motion about [rad/s] and along [m/s] the axes."""
    across = self.frame.rotation.transposed
    return [*(across @ motion.angular), *(across @ motion.at(self.frame.position))]

  @property
  def force(self) -> Force:
    """The force on the body, about its tree origin."""
    momentum = self._momentum
    torque = cross(momentum, self.flow) + cross(self._angular_momentum, self.turn)
    torque = torque - self.turn * (self._stokes_torque + self._turning_drag)
    force = cross(momentum, self.turn) + cross(self.turn, self.flow) * self._magnus
    force = force + self._lift - self.flow * (self._stokes_force + self._pressing_drag * self._speed)
    axes = self.frame.rotation
    return Force(axes @ torque, axes @ force).moved(self.frame.position)

  @property
  def gradient(self) -> list[list[Number]]:
    """The derivatives [6, 6] of torque and force by angular and linear velocity."""
    v, w, momentum = self.flow, self.turn, self._momentum
    mass, inertia = _diagonal(self._virtual(VIRTUAL_MASS)), _diagonal(self._virtual(VIRTUAL_INERTIA))
    lift = _skew(w * self._magnus) + self._lift_gradient
    blocks = (
      (
        _skew(self._angular_momentum) + _skew(-w).times(inertia) + self._torque_gradient,
        _skew(momentum) + _skew(-v).times(mass),
      ),
      (
        _skew(momentum) + _skew(v * -self._magnus),
        _skew(-w).times(mass) + lift + self._drag_gradient,
      ),
    )
    return [[*left[i], *right[i]] for left, right in blocks for i in range(3)]

  def damping(self, model: Model, p: Poses, *, skew: bool = False) -> Iterator[tuple[At, Number]]:
    """Yield the lower triangle of the joint forces' negated derivative by velocity.

    This is the symmetric part, or the antisymmetric one if `skew`.
    """
    B, sign = self.gradient, -1.0 if skew else 1.0
    part = [[-0.5 * (B[r][c] + sign * B[c][r]) for c in range(6)] for r in range(6)]
    columns = {dof: self.along(p.cdof[dof]) for dof in dofs_above(model, self.body)}
    for j, column in columns.items():
      force = [dot(row, column) for row in part]
      yield from (((i, j), dot(columns[i], force)) for i in columns if i >= j)

  def _virtual(self, columns: slice) -> Vector:
    """Return mass [kg] or moments of inertia [kg m^2] of the fluid that moves along."""
    return Vector(*self.coefficients[columns]) * self.density

  @cached_property
  def _momentum(self) -> Vector:
    return _times(self._virtual(VIRTUAL_MASS), self.flow)

  @cached_property
  def _angular_momentum(self) -> Vector:
    return _times(self._virtual(VIRTUAL_INERTIA), self.turn)

  @property
  def _magnus(self) -> Number:
    """The lift by the product of angular velocity and velocity."""
    x, y, z = self.semiaxes
    return self.coefficients[MAGNUS] * self.density * (4.0 / 3.0 * math.pi * x * y * z)

  @cached_property
  def _speed(self) -> Number:
    return sqrt(dot(self.flow, self.flow))

  @cached_property
  def _direction(self) -> Vector:
    """The direction of the flow; zero without any."""
    return self.flow * (1.0 / maximum(self._speed, MINVAL))

  @cached_property
  def _faces(self) -> Vector:
    """The squares of the projected areas along the axes, relative to the greatest."""
    longest, middle = _two_longest(self.semiaxes)
    x, y, z = (axis / longest for axis in self.semiaxes)
    return Vector(*(power(a * b * (longest / middle), 2) for a, b in ((y, z), (z, x), (x, y))))

  @cached_property
  def _projection(self) -> tuple[Number, Number]:
    """The sums of faces and of squared faces, each times a component of the direction squared."""
    squares = _times(self._direction, self._direction)
    once, twice = dot(self._faces, squares), dot(_times(self._faces, self._faces), squares)
    return maximum(once, MINVAL), maximum(twice, MINVAL)

  @cached_property
  def _area(self) -> Number:
    """The projected area [m^2] across the flow."""
    once, twice = self._projection
    return self._greatest_area * sqrt(twice / once)

  @property
  def _greatest_area(self) -> Number:
    longest, middle = _two_longest(self.semiaxes)
    return math.pi * longest * middle

  def _spread(self, weights: Vector) -> Vector:
    """Return for each axis the weighted sum of the differences between the faces and its own."""
    faces = self._faces
    return Vector(*(total((b - a) * x for b, x in zip(faces, weights, strict=True)) for a in faces))

  @property
  def _lift(self) -> Vector:
    """The force of Kutta and Joukowski."""
    once, twice = self._projection
    across = _times(self._direction, self._spread(_times(self._direction, self._direction)))
    return across * (self._kutta * self._area * self._speed * self._speed * once / twice)

  @property
  def _lift_gradient(self) -> Matrix:
    u, faces, (once, twice) = self._direction, self._faces, self._projection
    spread = self._spread(_times(u, u))
    by_cosine = [b * (b * once / twice - 1.0) + once for b in faces]
    rows = []
    for i in range(3):
      slopes = [2.0 * once * (b - faces[i]) - spread[i] * c for b, c in zip(faces, by_cosine, strict=True)]
      rows.append(_times(u, Vector(*slopes)) * u[i])
    lift = Matrix(*rows) + _diagonal(spread * once)
    return _scaled(lift, self._kutta * self._area * self._speed / twice)

  @property
  def _kutta(self) -> Number:
    return self.coefficients[KUTTA] * self.density

  @property
  def _pressing_drag(self) -> Number:
    """The drag by the square of the speed."""
    blunt, slender = (self.coefficients[k] for k in (BLUNT, SLENDER))
    return self.density * (self._area * blunt + slender * (self._greatest_area - self._area))

  @property
  def _drag_gradient(self) -> Matrix:
    u, (once, twice) = self._direction, self._projection
    even = self._pressing_drag * self._speed
    # Growth of the projected area as the flow turns.
    growth = _times(_times(self._faces, u), -self._spread(_times(self._faces, _times(u, u))))
    steeper = (
      self.density * (self.coefficients[BLUNT] - self.coefficients[SLENDER]) * self._area * self._speed
    )
    along = u * even + growth * (steeper / (once * twice))
    return _outer(-u, along) + _isotropic(-even - self._stokes_force)

  @cached_property
  def _resistance(self) -> Vector:
    """The drag about each axis, by the square of the angular velocity, relative to `_greatest_moment`."""
    angular, slender = (self.coefficients[k] for k in (ANGULAR, SLENDER))
    x, y, z = self.semiaxes
    moments = (_moment(a, maximum(b, c)) for a, b, c in ((x, y, z), (y, z, x), (z, x, y)))
    shares = (moment / self._greatest_moment for moment in moments)
    return Vector(*(angular * share + slender * (1.0 - share) for share in shares))

  @property
  def _greatest_moment(self) -> Number:
    longest, middle = _two_longest(self.semiaxes)
    return _moment(middle, longest)

  @cached_property
  def _resisted(self) -> Number:
    resisted = _times(self._resistance, self.turn)
    return sqrt(dot(resisted, resisted))

  @property
  def _turning_drag(self) -> Number:
    """The drag by angular velocity."""
    return self.density * self._greatest_moment * self._resisted

  @property
  def _torque_gradient(self) -> Matrix:
    growth = _times(_times(self._resistance, self._resistance), self.turn)
    along = growth * (self.density * self._greatest_moment / maximum(self._resisted, MINVAL))
    return _outer(-self.turn, along) + _isotropic(-self._turning_drag - self._stokes_torque)

  @property
  def _stokes_force(self) -> Number:
    """The viscous resistance of a sphere of the mean size, by velocity."""
    return self.viscosity * (2.0 * math.pi * total(self.semiaxes))

  @property
  def _stokes_torque(self) -> Number:
    """The viscous resistance of that sphere, by angular velocity."""
    return self.viscosity * (math.pi * power(2.0 / 3.0 * total(self.semiaxes), 3))


def ellipsoids(model: Model, p: Poses, velocity: list[Motion]) -> Iterator[Ellipsoid]:
  """Yield the geoms that count as ellipsoids, at the velocities of bodies [nbody]."""
  for body in wet_bodies(model):
    for geom in ellipsoidal_geoms(model, body):
      at = frame(model, p, GEOM, geom)
      inverse = at.rotation.transposed
      strength = number(model.geom_fluid[geom, INTERACTION]) * has_mass(model, body)
      yield Ellipsoid(
        frame=at,
        turn=inverse @ velocity[body].angular,
        flow=inverse @ (velocity[body].at(at.position) - vector(model.wind)),
        semiaxes=_semiaxes(model, geom),
        coefficients=[number(x) for x in model.geom_fluid[geom]],
        density=strength * number(model.density),
        viscosity=strength * number(model.viscosity),
      )


def _semiaxes(model: Model, geom: int) -> Vector:
  x, y, z = (number(size) for size in model.geom_size[geom])
  kind = model.geom_type[geom]
  if kind == SPHERE:
    return Vector(x, x, x)
  if kind in (CAPSULE, CYLINDER):
    return Vector(x, x, x + y if kind == CAPSULE else y)
  return Vector(x, y, z)


def _two_longest(semiaxes: Vector) -> tuple[Number, Number]:
  x, y, z = semiaxes
  longest, shortest = maximum(maximum(x, y), z), minimum(minimum(x, y), z)
  return longest, x + y + z - longest - shortest


def _moment(along: Number, across: Number) -> Number:
  return 8.0 / 15.0 * math.pi * along * power(across, 4)


def _times(a: Vector, b: Vector) -> Vector:
  return Vector(*(x * y for x, y in zip(a, b, strict=True)))


def _outer(a: Vector, b: Vector) -> Matrix:
  return Matrix(*(b * x for x in a))


def _diagonal(a: Vector) -> Matrix:
  return Matrix(Vector(a[0], 0.0, 0.0), Vector(0.0, a[1], 0.0), Vector(0.0, 0.0, a[2]))


def _isotropic(a: Number) -> Matrix:
  return _diagonal(Vector(a, a, a))


def _scaled(matrix: Matrix, factor: Number) -> Matrix:
  return Matrix(*(row * factor for row in matrix))


def _skew(a: Vector) -> Matrix:
  """Return the matrix that multiplies as the vector product with `a`."""
  x, y, z = a
  return Matrix(Vector(0.0, -z, y), Vector(z, 0.0, -x), Vector(-y, x, 0.0))
