"""Contacts of faces and edges lie where the shapes touch."""

import numpy as np

from physics.load import load_model
from physics.parity import random_states
from physics.parity.contacts import NORMAL, one_point, traced_contacts
from physics.parity.reference import converged

# The axis of the cylinder lies in the plane of the box's right side, as at the hips of a robot dog.
FLUSH = """<mujoco><worldbody><geom type="box" size="0.1881 0.0468 0.057"/>
  <body pos="0.1881 0 0"><joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
  <joint axis="1 0 0"/><geom type="cylinder" size="0.035 0.02"/></body></worldbody></mujoco>"""


def test_a_line_in_the_plane_of_another_side_is_no_contact():
  """Its depth is zero but for rounding, and it would push sideways: by 35 mm, where the rim is 5 mm deep."""
  model = converged(load_model(FLUSH))
  states, random = random_states(model, 64), np.random.default_rng(0)
  states.qpos[:, 0] = -0.06 - 0.03 * random.uniform(size=64)
  states.qpos[:, 1] = 0.08 * random.normal(size=64)
  states.qpos[:, 2] = random.uniform(0.2, 1.3, 64)
  contacts, alone = traced_contacts(model, states), traced_contacts(one_point(model), states)
  assert sum(map(len, contacts)) > 20
  for rows, (search, *_) in ((a, b) for a, b in zip(contacts, alone, strict=True) if len(b)):
    assert (rows[:, NORMAL] @ search[NORMAL] > 0.99).all()
