"""Contacts of whole scenes with the world, as the engine and as MuJoCo find them."""

import dataclasses

import numpy as np

from physics.algebra.spatial import Vector
from physics.collision.geometry import tangents
from physics.constraint.world import find_world_contacts, is_still
from physics.dynamics.kinematics import poses
from tests.physics.oracle import assert_same_rows, collect, evaluate, mujoco_at

WIDTH = 12  # weight, geom's body, distance, normal, point, first tangent


def found_contacts(model, qpos, sizes=None):
  """Return for every state [state, nq] the contacts found: body, distance, normal, point, first tangent.

  Every state may have `sizes` [state, ngeom, 3] of the geoms of its own.
  """

  def traced(program, *numbers):
    p = poses(model, list(numbers[: model.nq]))
    own = np.array(numbers[model.nq :], object).reshape(-1, 3) if sizes is not None else model.geom_size
    varied = dataclasses.replace(model, geom_size=own)
    found = find_world_contacts(program, varied, p, list(range(model.nbody)))

    def describe(entry):
      normal, body = Vector(*entry.vector("normal")), entry["geom_body"]
      origins = [program.array(model.nbody) for _ in range(3)]
      for axis, array in enumerate(origins):
        array.fill([origin[axis] for origin in p.origin])
      point = [x + array[body] for x, array in zip(entry.vector("point"), origins, strict=True)]
      first, _ = tangents(normal, Vector(*entry.vector("hint")))
      number = program.table([float(b) for b in range(model.nbody)], body)
      return [entry["weight"], number, entry["distance"], *normal, *point, *first]

    return collect(program, found, describe, WIDTH)

  numbers = np.hstack([qpos, *([] if sizes is None else [sizes.reshape(len(qpos), -1)])])
  table = evaluate(traced, *numbers.T).T.reshape(len(qpos), -1, WIDTH)
  return [rows[rows[:, 0] > 0, 1:] for rows in table]


def mujoco_contacts(model, qpos):
  """Return MuJoCo's contacts with the world that push, their normals turned towards the moving body."""
  rows = []
  for contact in mujoco_at(model, qpos).contact:
    still = [is_still(model, geom) for geom in contact.geom]
    if any(still) and contact.efc_address >= 0:
      moving = contact.geom[still.index(False)]
      normal = contact.frame[:3] * (1 if still[0] else -1)
      rows.append([model.geom_bodyid[moving], contact.dist, *normal, *contact.pos, *contact.frame[3:6]])
  return np.array(rows).reshape(-1, WIDTH - 1)


def random_poses(count, spread, center=(0, 0, 0)):
  """Return poses [count, 7] of a free body, with places normally distributed about a centre."""
  random = np.random.default_rng(0)
  place = np.array(center) + random.normal(scale=spread, size=(count, 3))
  return np.hstack([place, random.normal(size=(count, 4))])


def assert_contacts_are_mujocos(model, qpos, tolerance=1e-9):
  """Assert that contacts are MuJoCo's, distances to 1e-6 at most, and return the number in each state."""
  counts = []
  for state, found in zip(qpos, found_contacts(model, qpos), strict=True):
    expected = mujoco_contacts(model, state)
    assert_same_rows(found, expected, tolerance)
    assert_same_rows(found[:, 1:2], expected[:, 1:2], min(tolerance, 1e-6))
    counts.append(len(expected))
  return counts


def assert_touches_as_mujoco(model, cases, tolerance=1e-9):
  """Assert that contacts are MuJoCo's in each case by name: a pose [nq], and how many contacts it has."""
  counts = assert_contacts_are_mujocos(model, np.array([pose for pose, _ in cases.values()]), tolerance)
  assert dict(zip(cases, counts, strict=True)) == {name: count for name, (_, count) in cases.items()}
