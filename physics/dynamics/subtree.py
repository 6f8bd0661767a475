"""Subtrees of bodies: their masses and centres of mass."""

from functools import partial

from physics.algebra.spatial import FLAT, MINVAL, Inertia, Vector, select, vector
from physics.dynamics.bodies import leaves_first
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.trace.each import entry, follow, numbers, places
from physics.trace.rows import rows
from physics.trace.trace import Number, is_zero, maximum, number


def subtree_sums(model: Model, p: Poses, inertias: list[Inertia]) -> tuple[list[Number], list[Vector]]:
  """Return mass [kg] and first moment [kg m] of each body's subtree, relative to the tree origin.

  Given are the inertias of the bodies alone.
  """
  mass, moment = numbers(p.program, model.nbody), rows(p.program, Vector, model.nbody, sums=True)
  for body in places(p.program, range(model.nbody)):
    mass[body], moment[body] = inertias[body].mass, inertias[body].moment
  for body in leaves_first(model, p.program):
    parent = follow(model.body_parentid, body)
    mass[parent] = mass[parent] + mass[body]
    moment[parent] = moment[parent] + (moment[body] + (p.origin[body] - p.origin[parent]) * mass[body])
  return mass, moment


def subtree_centers(model: Model, p: Poses, masses: list[Number], moments: list[Vector]) -> list[Vector]:
  """Return the centre of mass [m] of each body's subtree, relative to the tree origin, from its sums."""
  centers = rows(p.program, Vector, model.nbody)
  for body in places(p.program, range(model.nbody)):
    mass, alone = masses[body], partial(p.relative, body, vector(entry(model.body_ipos, body)))
    if is_zero(mass):
      centers[body] = alone()
      continue
    center = moments[body] * (1.0 / maximum(mass, MINVAL))
    centers[body] = select(mass > 0.0, center, alone()) if p.program else center
  return centers


def centers_of_pose(model: Model, p: Poses) -> list[Vector]:
  """Return the centre of mass [m] of each body's subtree, relative to the tree origin, from poses alone."""
  masses = [number(mass) for mass in model.body_mass]
  centers = [p.relative(body, vector(model.body_ipos[body])) for body in range(model.nbody)]
  points = [Inertia(mass, at * mass, FLAT) for at, mass in zip(centers, masses, strict=True)]
  return subtree_centers(model, p, *subtree_sums(model, p, points))
