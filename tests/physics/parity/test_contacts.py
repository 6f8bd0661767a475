"""Contact points compared in any order."""

import numpy as np

from physics.parity import random_states
from physics.parity.contacts import BODIES, NORMAL, contact_errors, mujoco_contacts, traced_contacts
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
