"""Contacts with what stands still, against MuJoCo's."""

import numpy as np
import pytest

from physics.constraint.world import is_still, world_pairs
from physics.load import load_model
from physics.parity import random_states
from tests.physics.collision.scene import assert_contacts_are_mujocos, found_contacts, mujoco_contacts
from tests.physics.oracle import assert_same_rows

SCENE = """<mujoco><worldbody>
  <geom type="plane" size="1 1 1"/><body pos="1 0 0"><geom type="capsule" size="0.1 0.3"/></body>
  <body pos="3 0 1"><freejoint/><geom type="capsule" size="0.1 0.3"/><body><geom size="0.2"/></body></body>
  <body pos="5 0 1"><joint/><geom size="0.2"/></body>
</worldbody></mujoco>"""


def test_what_never_moves():
  model = load_model(SCENE)
  assert [is_still(model, geom) for geom in range(model.ngeom)] == [True, True, False, False, False]
  assert len(world_pairs(model)) == 6
  assert len(model.pairs) == 8


CROWD = """<mujoco><option><flag midphase="disable"/></option><worldbody>
  <geom type="plane" size="1 1 1"/><geom type="box" size="0.3 0.2 0.1" contype="2"/>
  <geom type="capsule" size="0.1 0.3" contype="4" euler="50 20 0"/>
  {}</worldbody></mujoco>"""
MOVERS = {
  "sphere": 7,
  "capsule": 7,
  "ellipsoid": 1,
  "cylinder": 1,
  "box": 7,
}  # and what they meet: plane 1, box 2, capsule 4


@pytest.mark.parametrize("kind", MOVERS)
def test_sizes_may_differ_between_environments(kind):
  geom = f'<geom type="{kind}" size="0.1 0.15 0.2" conaffinity="{MOVERS[kind]}" contype="0"/>'
  body = f"<body><freejoint/>{geom}</body>"
  model, random = load_model(CROWD.format(2 * body)), np.random.default_rng(0)
  place = random.normal(scale=0.2, size=(40, 2, 3))
  qpos = np.concatenate([place, random.normal(size=(40, 2, 4))], axis=2).reshape(40, -1)
  sizes = model.geom_size * random.uniform(0.5, 1.5, (40, model.ngeom, 3))
  count = 0
  for state, size, found in zip(qpos, sizes, found_contacts(model, qpos, sizes), strict=True):
    model.mj.geom_size[:] = size
    model.mj.geom_rbound[1:] = 2.0
    expected = mujoco_contacts(model, state)
    assert_same_rows(found, expected)
    count += len(expected)
  assert count > 40


def test_a_group_has_room_for_every_candidate_of_one_pair():
  """Capsules cross in one lane, and lie along each other with different ends in the others."""
  model = load_model("""<mujoco><worldbody><geom type="capsule" size="0.1 0.3"/>
    <body><freejoint/><geom type="capsule" size="0.1 0.3"/></body></worldbody></mujoco>""")
  states = random_states(model, 3)
  states.qpos[:] = model.qpos0
  states.qpos[:, 0], states.qpos[:, 2] = 0.19, (0.0, 0.3, -0.3)
  states.qpos[0, 3:] = [0.8, 0.6, 0, 0]
  contacts = assert_contacts_are_mujocos(model, states.qpos)
  assert contacts == [1, 2, 2]


def test_parallel_capsules_find_room_for_all_their_contacts():
  """A capsule lies along a fixed one, a plane is far below: two contacts, at the ends of the overlap."""
  model = load_model(SCENE)
  states = random_states(model, 1)
  states.qpos[0] = [1.15, 0, 0, 1, 0, 0, 0, 0]
  assert assert_contacts_are_mujocos(model, states.qpos) == [5]
