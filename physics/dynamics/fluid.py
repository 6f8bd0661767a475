"""Fluid drag on bodies, each as the box with its mass and inertia; selection of wet bodies.

Source: MuJoCo's manual, chapter Computation, section Fluid forces, Inertia model.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from physics.algebra.sparse import At
from physics.algebra.spatial import MINVAL, Force, Matrix, Motion, Quaternion, Vector, total, vector
from physics.dynamics.kinematics import Poses, dofs_above
from physics.model.model import Model
from physics.trace.trace import Number, absolute, is_zero, maximum, number, power, sqrt, where

INTERACTION = 0  # column of `geom_fluid`: 1 for a geom that counts as an ellipsoid


@dataclass(frozen=True)
class Drag:
  """The drag on a body: a force -(b + c |u|) u against each of six velocities u, the first three angular."""

  body: int
  axes: Matrix  # columns: axes of the body's inertia
  center: Vector  # centre of mass relative to the tree origin
  flow: Motion  # velocity of the body relative to the fluid, about the tree origin
  viscous: list[Number]  # b [6]
  inertial: list[Number]  # c [6]

  def along(self, motion: Motion) -> list[Number]:
    """Return the velocities [6] of a motion, about [rad/s] and along [m/s] the axes."""
    across = self.axes.transposed
    return [*(across @ motion.angular), *(across @ motion.at(self.center))]

  @property
  def force(self) -> Force:
    """The force on the body, about its tree origin."""
    local = [
      -((b + c * absolute(u)) * u)
      for u, b, c in zip(self.along(self.flow), self.viscous, self.inertial, strict=True)
    ]
    return Force(self.axes @ Vector(*local[:3]), self.axes @ Vector(*local[3:])).moved(self.center)

  @property
  def slope(self) -> list[Number]:
    """The negated derivatives [6] of the forces by their velocities."""
    return [
      b + 2.0 * c * absolute(u)
      for u, b, c in zip(self.along(self.flow), self.viscous, self.inertial, strict=True)
    ]

  def damping(self, model: Model, p: Poses) -> Iterator[tuple[At, Number]]:
    """Yield terms of the lower triangle of the joint forces' negated derivative by velocity."""
    columns = {dof: self.along(p.cdof[dof]) for dof in dofs_above(model, self.body)}
    for k, slope in enumerate(self.slope):
      row = {dof: column[k] for dof, column in columns.items()}
      yield from (((i, j), slope * row[i] * row[j]) for i in row for j in row if j <= i)


def drags(model: Model, p: Poses, velocity: list[Motion]) -> Iterator[Drag]:
  """Yield the drag on every wet body without ellipsoidal geoms, at the bodies' velocities [nbody]."""
  for body in wet_bodies(model):
    if not ellipsoidal_geoms(model, body):
      axes = p.rotation[body].times(Quaternion.constant(model.body_iquat[body]).matrix())
      center = p.relative(body, vector(model.body_ipos[body]))
      flow = Motion(velocity[body].angular, velocity[body].linear - vector(model.wind))
      yield Drag(body, axes, center, flow, *_coefficients(model, body))


def wet_bodies(model: Model) -> list[int]:
  """Return the bodies on which a fluid acts: those with mass that some joint moves."""
  if is_zero(model.density) and is_zero(model.viscosity):
    return []
  bodies = range(1, model.nbody)
  return [body for body in bodies if model.body_weldid[body] and not is_zero(model.body_mass[body])]


def ellipsoidal_geoms(model: Model, body: int) -> list[int]:
  """Return the geoms of a body on which a fluid acts as on ellipsoids; with any, it has no other drag."""
  return np.flatnonzero((model.geom_bodyid == body) & (model.geom_fluid[:, INTERACTION] > 0.0)).tolist()


def has_mass(model: Model, body: int) -> Number:
  """Return 1, or 0 for a body with a varied mass of zero."""
  return where(number(model.body_mass[body]) < MINVAL, 0.0, 1.0)


def _coefficients(model: Model, body: int) -> tuple[list[Number], list[Number]]:
  """Return b and c [6]: Stokes' drag on a sphere of the box's mean size, quadratic drag on its faces.

  A body with a varied mass of zero has no drag.
  """
  moments, mass = [number(x) for x in model.body_inertia[body]], number(model.body_mass[body])
  per_mass, present = 6.0 / maximum(mass, MINVAL), has_mass(model, body)
  x, y, z = (sqrt(maximum(total(moments) - 2.0 * moment, MINVAL) * per_mass) for moment in moments)
  viscosity, density = present * number(model.viscosity), present * number(model.density)
  mean, axes = (x + y + z) / 3.0, ((x, y, z), (y, z, x), (z, x, y))
  viscous = [math.pi * mean * mean * mean * viscosity] * 3 + [3.0 * math.pi * mean * viscosity] * 3
  turning = [density * a * (power(b, 4) + power(c, 4)) / 64.0 for a, b, c in axes]
  pressing = [0.5 * density * b * c for _, b, c in axes]
  return viscous, turning + pressing
