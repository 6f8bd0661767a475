"""Reference points of inertias: the trees' origins, or nearer ones in models with light links far from them.

The inertia of a link about a distant point is mostly its mass times the distance squared. The link's own
inertia is a small part of it, and float32 keeps seven digits of the whole: a finger of 10 g on an arm would
keep three of its own. In such a model a body's inertia is about its own origin, unless the reference of the
body that carries it is near enough. It is moved where it is added to the inertia of that body.

A free or sliding object with its centre of mass away from its origin has the same problem with its weight:
about the origin this is a torque, which the object's own acceleration cancels. Its inertia stays where it
is; accelerations are refined, as with light links.

A thin body, such as a needle, has it with its gyroscopic torque: about its long axis this cancels to a
residue that meets next to no inertia. Its accelerations are refined too, by torques about principal axes.
"""

from functools import lru_cache

import numpy as np

from physics.host import evaluate, initial_inertia
from physics.model.model import Bools, Floats, Model

FREE, SLIDE, TURNING = 0, 2, (1, 3)  # mjtJoint; balls and hinges
LIGHT = 150.0  # inertia about the tree's origin over the one a joint moves: rounding is 1e-5 of the latter
FAR = 1.0  # [m] that a slide without limits takes its body
NEAR = 20.0  # the same about a reference that bodies share, in a model with light links
PARALLEL = 1e-9  # inertia over another below which it is none: two hinges of a body have one axis
UNEVEN = 15.0  # [1/m] turn per acceleration of an object pushed at its origin: rounding is 1e-6 of gravity


@lru_cache(maxsize=8)
def has_light_links(model: Model) -> bool:
  """Return whether some body's own inertia is small against its inertia about the origin of its tree."""
  return _references(model, LIGHT) != _references(model, np.inf)


@lru_cache(maxsize=8)
def has_uneven_objects(model: Model) -> bool:
  """Return whether some object, with all that it carries, would turn fast if a force pushed its origin.

  An object is a body on the world with a free joint, or with slides and joints that turn it.
  """
  first = np.isin(model.body_parentid, np.flatnonzero(model.body_treeid < 0)) & (model.body_dofnum > 1)
  inertia = initial_inertia(model) if first.any() else np.empty(0)
  pushed = _is_push(model)
  for body in np.flatnonzero(first):
    own = slice(model.body_dofadr[body], model.body_dofadr[body] + model.body_dofnum[body])
    # [rad/s^2] by a unit of force; bodies that it carries are held
    turn = np.linalg.pinv(inertia[own, own], hermitian=True)[~pushed[own]][:, pushed[own]]
    is_uneven = turn.size and model.mj.body_subtreemass[body] * np.linalg.norm(turn, 2) > UNEVEN
    if is_uneven and _weight(model)[own][pushed[own]].any():  # a swimmer in the plane has none
      return True
  return False


@lru_cache(maxsize=8)
def has_thin_bodies(model: Model) -> bool:
  """Return whether some body's joints turn it about an axis with little of its inertia about another."""
  inertia, turns = initial_inertia(model), ~_is_push(model)
  for body in np.unique(model.dof_bodyid[turns]):
    own = np.flatnonzero(turns & (model.dof_bodyid == body))
    moments = np.linalg.eigvalsh(inertia[np.ix_(own, own)])
    if ((moments > PARALLEL * moments[-1]) & (moments * LIGHT < moments[-1])).any():
      return True
  return False


def _weight(model: Model) -> Floats:
  """Return the joint forces [nv] that hold the model's weight in the initial pose."""
  return evaluate(model, {"qpos": model.mj.qpos0[None]}, ["qfrc_bias"])["qfrc_bias"][0]


def _is_push(model: Model) -> Bools:
  """Return which degrees of freedom [nv] move the origin of their body without turning it."""
  kind = model.jnt_type[model.dof_jntid]
  place = np.arange(model.nv) - model.jnt_dofadr[model.dof_jntid]
  return (kind == SLIDE) | (kind == FREE) & (place < 3)


@lru_cache(maxsize=8)
def reference_bodies(model: Model) -> list[int]:
  """Return each body's reference body [nbody], the origin of its inertia: its tree's root, or one nearer.

  Bodies that are welded to another share its reference.
  """
  return _references(model, NEAR if has_light_links(model) else np.inf)


def _references(model: Model, most: float) -> list[int]:
  """Return each body's reference body: the inertia about it is at most `most` times the one its joints move.

  Distances between origins are along the tree, whatever the pose; slides are at the end of their
  ranges. Static bodies have the world's.
  """
  mass, own = model.mj.body_subtreemass, _least_inertia(model)
  step = np.linalg.norm(model.mj.body_pos, axis=1) + _travel(model)
  references = [body if model.body_treeid[body] >= 0 else 0 for body in range(model.nbody)]
  distance = np.zeros(model.nbody)
  for body in range(1, model.nbody):
    parent = int(model.body_parentid[body])
    if model.body_treeid[parent] < 0:
      continue
    distance[body] = distance[parent] + step[body]
    if mass[body] * distance[body] ** 2 > most * own[body]:
      distance[body] = 0.0
    else:
      references[body] = references[parent]
  return references


def _travel(model: Model) -> Floats:
  """Return the largest travel [nbody] [m] of each body relative to its parent, by its slides."""
  travel, slides = np.zeros(model.nbody), model.jnt_type == SLIDE
  ends = np.where(model.jnt_limited.astype(bool), np.abs(model.mj.jnt_range).max(axis=1, initial=0.0), FAR)
  np.add.at(travel, model.jnt_bodyid[slides], ends[slides])
  return travel


def _least_inertia(model: Model) -> Floats:
  """Return by body the least inertia [kg m^2] [nbody] that a turn about one of its joints moves, at qpos0."""
  inertia = np.full(model.nbody, np.inf)
  turning = np.isin(model.jnt_type[model.dof_jntid], TURNING)
  np.minimum.at(inertia, model.dof_bodyid[turning], model.mj.dof_M0[turning])
  return inertia
