"""Subtrees of bodies: their masses and centres of mass."""

from __future__ import annotations

from physics.algebra.spatial import MINVAL, Vector, vector
from physics.dynamics.kinematics import Poses
from physics.model.model import Model
from physics.trace.trace import Number, is_zero, maximum, number


def subtree_sums(
  model: Model, p: Poses, masses: list[Number], moments: list[Vector]
) -> tuple[list[Number], list[Vector]]:
  """Return mass [kg] and first moment [kg m] of each body's subtree, relative to the tree origin.

  Given are those of the bodies alone.
  """
  mass, moment = list(masses), list(moments)
  for body in reversed(range(1, model.nbody)):
    parent = model.body_parentid[body]
    mass[parent] = mass[parent] + mass[body]
    moment[parent] = moment[parent] + (moment[body] + (p.origin[body] - p.origin[parent]) * mass[body])
  return mass, moment


def subtree_centers(model: Model, p: Poses, masses: list[Number], moments: list[Vector]) -> list[Vector]:
  """Return the centre of mass [m] of each body's subtree, relative to the tree origin, from its sums."""
  centers = []
  for body, (mass, moment) in enumerate(zip(masses, moments, strict=True)):
    if is_zero(mass):
      centers.append(p.relative(body, vector(model.body_ipos[body])))
    else:
      centers.append(moment * (1.0 / maximum(mass, MINVAL)))
  return centers


def centers_of_pose(model: Model, p: Poses) -> list[Vector]:
  """Return the centre of mass [m] of each body's subtree, relative to the tree origin, from poses alone."""
  masses = [number(mass) for mass in model.body_mass]
  places = [p.relative(body, vector(model.body_ipos[body])) for body in range(model.nbody)]
  moments = [place * mass for place, mass in zip(places, masses, strict=True)]
  return subtree_centers(model, p, *subtree_sums(model, p, masses, moments))
