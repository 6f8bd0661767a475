"""Contact points compared in any order."""

import numpy as np

from physics.parity import random_states
from physics.parity.contacts import (
  BODIES,
  NORMAL,
  contact_errors,
  mujoco_contacts,
  other_corners,
  other_faces,
  traced_contacts,
)
from tests.physics.conftest import load


def contact(bodies, distance, point):
  return [*bodies, distance, 0.0, *point, 0.0, 0.0, 1.0]


ONE = contact((0, 1), -0.01, (0, 0, 0))
TWO = contact((0, 1), -0.02, (1, 0, 0))
OTHER = contact((1, 2), -0.02, (1, 0, 0))


def errors(found, expected, grazing=0.0):
  table = [np.array(rows, float).reshape(-1, 10) for rows in (found, expected)]
  return contact_errors([table[0]], [table[1]], grazing)[:, 0]


def test_order_does_not_count_and_pairs_do():
  np.testing.assert_array_equal(errors([ONE, TWO], [TWO, ONE]), 0)
  assert np.isinf(errors([ONE, TWO], [ONE, OTHER])).all()
  assert np.isinf(errors([ONE, TWO], [ONE])).all()
  assert np.isinf(errors([], [ONE])).all()


def test_each_contact_is_compared_with_the_nearest():
  moved = contact((0, 1), -0.021, (1, 0.002, 0))
  np.testing.assert_allclose(errors([ONE, moved], [TWO, ONE]), [0.001, 0.002, 0])


def test_what_grazes_the_margin_may_be_missing():
  grazing = contact((0, 1), -1e-6, (1, 0, 0))
  np.testing.assert_array_equal(errors([ONE, grazing], [ONE], grazing=1e-5), 0)
  assert np.isinf(errors([ONE, grazing], [ONE], grazing=1e-7)).all()


def test_rows_say_what_touches():
  model = load("free_bodies")
  states = random_states(model, 64)
  found, expected = traced_contacts(model, states), mujoco_contacts(model.mj, states)
  assert contact_errors(found, expected, 1e-9).max() < 1e-9
  rows = np.concatenate(found)
  assert len(rows) > 64
  assert {0.0, 1.0, 2.0} < set(rows[:, 0])
  assert (rows[:, BODIES][:, 1] > 0).all()
  np.testing.assert_allclose(np.linalg.norm(rows[:, NORMAL], axis=1), 1)


def on_a_slope(*places):
  """Contacts of two faces, one of which leans."""
  return [contact((0, 1), -0.01 + 0.1 * x - 0.05 * y, (x, y, 0.3)) for x, y in places]


LOWEST, RING = (-0.1, 0.1), [(0.1, 0.1), (0.1, -0.1), (-0.1, -0.1), (0.0, 0.12)]
THEIRS = on_a_slope(LOWEST, *RING[:3])


def is_other_choice(found, expected):
  tables = [[np.array(rows, float).reshape(-1, 10)] for rows in (found, expected)]
  return bool(other_corners(*tables, (1e-5, 1e-4, 1e-3))[0])


def test_other_corners_of_the_same_faces_are_told_from_other_contacts():
  chosen = on_a_slope(LOWEST, RING[0], RING[2], RING[3])
  assert is_other_choice(chosen, THEIRS)
  assert is_other_choice([*chosen, OTHER], [OTHER, *THEIRS])
  assert not is_other_choice(chosen[:3], THEIRS), "as many contacts"
  assert not is_other_choice([*chosen, OTHER], THEIRS), "between the same bodies"
  assert not is_other_choice(on_a_slope(*RING), THEIRS), "the deepest corner is one of them"
  deeper = [[*row[:2], row[2] - 1e-4, *row[3:]] for row in chosen]
  assert not is_other_choice(deeper, THEIRS), "at the depth of the faces there"
  turned = [[*row[:7], 0.0, 0.01, 1.0] for row in chosen]
  assert not is_other_choice(turned, THEIRS), "along the same normal"


def test_fewer_than_four_contacts_are_no_choice_of_corners():
  assert is_other_choice(THEIRS[:2], THEIRS[1::-1])
  assert not is_other_choice(on_a_slope(LOWEST, RING[0]), on_a_slope(LOWEST, RING[1]))


def test_other_faces_lie_along_what_the_search_found():
  """Its depth and normal have to agree; each contact of a face is within about 5 degrees of it."""
  tilted = [0.0, np.sin(0.05), np.cos(0.05)]
  found = np.array([[1, 2, -0.001, 0, 0, 0, 0, *tilted], [1, 2, -0.002, 0, 1, 0, 0, *tilted]])
  search = np.array([[1, 2, -0.002, 0, 0.5, 0, 0, 0, 0, 1.0]])

  def is_open(found, ours, theirs):
    return bool(other_faces([found], [ours], [theirs], (1e-5, 1e-4, 1e-3))[0])

  assert is_open(found, search, search)
  assert is_open(found, search, search + np.array([0, 0, 0, 0, 1, 0, 0, 0, 0, 0]))  # where it ends in a face
  deeper, elsewhere = search.copy(), found.copy()
  deeper[0, 2] -= 1e-4
  elsewhere[1, 1] = 3
  assert not is_open(found, search, deeper)
  assert not is_open(elsewhere, search, search)
  assert not is_open(found[:0], search, search)
  found[0, 7:] = [0.0, np.sin(0.12), np.cos(0.12)]
  assert not is_open(found, search, search)
