"""MuJoCo C with given contacts."""

import mujoco
import numpy as np
import pytest

from physics.load import load_model
from physics.parity import random_states
from physics.parity.contacts import DISTANCE, GEOMS, mujoco_contacts
from physics.parity.given_contacts import GivenContacts
from physics.parity.reference import converging, known_contacts, merged, reference
from tests.physics.conftest import load

BELT = """<mujoco><default><geom type="cylinder"/><joint type="slide" range="-0.01 0.01"/></default>
  <worldbody><geom size="1 0.1" surfacevel="1 2 3 4 5 6"/>
  <body pos="0.3 0.2 0.19"><joint axis="1 0 0"/><joint axis="0 0 1"/>
    <geom size="0.1 0.1" surfacevel="0.1 0.2 0.3 0.4 0.5 0.6"/></body>
  </worldbody></mujoco>"""


@pytest.mark.parametrize("name", ["solids", "convex", pytest.param(BELT, id="belt")])
def test_its_own_contacts_change_nothing(name):
  model = load_model(name) if name == BELT else load(name)
  states = random_states(model, 8)
  contacts = mujoco_contacts(converging(model.mj), states)
  assert sum(map(len, contacts)) > 8
  expected, found = reference(model, states), reference(model, states, contacts)
  for field, values in vars(expected).items():
    np.testing.assert_allclose(getattr(found, field), values, rtol=1e-12, atol=1e-12, err_msg=field)


CYLINDERS = """<mujoco><worldbody><geom type="cylinder" size="0.1 0.1"/><body pos="0 0 0.1999">
  <joint type="slide" axis="0 0 1"/><joint axis="0 1 0"/><geom type="cylinder" size="0.1 0.1"/></body>
  </worldbody></mujoco>"""


def test_given_contacts_replace_searched_ones():
  """Half as deep they push less; contacts that MuJoCo does not have at all are not known."""
  model = load_model(CYLINDERS)
  states = random_states(model, 4)
  states.qpos[:] = states.qvel[:] = 0.0
  contacts = mujoco_contacts(converging(model.mj), states)
  shallower = [rows.copy() for rows in contacts]
  for rows in shallower:
    rows[:, DISTANCE] *= 0.5
  deep, shallow = reference(model, states, contacts).qacc, reference(model, states, shallower).qacc
  assert (shallow[:, 0] < deep[:, 0] - 1e-3).all()
  assert known_contacts(model, states, contacts).all()
  states.qpos[1:, 0] = 0.1
  assert known_contacts(model, states, contacts).tolist() == [True, False, False, False]


def test_given_contacts_have_mujocos_parameters_and_the_given_order():
  model = load_model(
    CYLINDERS.replace('size="0.1 0.1"/></body>', 'size="0.1 0.1" friction="0.3 0.1 0.1"/></body>')
  )
  states = random_states(model, 1)
  states.qpos[:] = states.qvel[:] = 0.0
  mj = converging(model.mj)
  data = mujoco.MjData(mj)
  rows = mujoco_contacts(mj, states)[0]
  turned = rows.copy()
  turned[:, GEOMS] = rows[:, GEOMS][:, ::-1]
  for given in (rows, turned):
    mujoco.mj_resetData(mj, data)
    GivenContacts(model).forward(mj, data, given)
    assert len(data.contact) == len(rows)
    np.testing.assert_allclose(data.contact.frame[:, :3], [[0, 0, 1]] * len(rows), atol=1e-9)
    np.testing.assert_array_equal(data.contact.friction[:, 0], 1.0)


def test_results_of_some_states_replace_others():
  model = load("solids")
  states = random_states(model, 4)
  every, rows = reference(model, states), np.array([False, True, False, True])
  mixed = merged(every, reference(model, states[[0, 0]]), rows)
  np.testing.assert_array_equal(mixed.qpos, every.qpos[[0, 0, 2, 0]])
