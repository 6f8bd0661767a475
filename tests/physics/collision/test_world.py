"""Contacts with what stands still, against MuJoCo's."""

import numpy as np
import pytest

from physics.collision.geometry import tangents
from physics.collision.world import find_world_contacts, is_still, world_pairs
from physics.kinematics import poses
from physics.load import load_model
from physics.parity import random_states
from physics.spatial import Vector
from tests.physics.conftest import load
from tests.physics.oracle import assert_same_rows, collect, evaluate, mujoco_at

WIDTH = 12  # weight, geom's body, distance, normal, point, first tangent


def find(model, states):
  """Return for every state the contacts found, one per row: body, distance, normal, point, first tangent."""

  def traced(program, *qpos):
    p = poses(model, list(qpos))
    bodies = list(range(model.nbody))
    found = find_world_contacts(program, model, p, bodies)

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

  table = evaluate(traced, *states.qpos.T).T.reshape(len(states), -1, WIDTH)
  return [rows[rows[:, 0] > 0, 1:] for rows in table]


def expect(model, qpos):
  """Return MuJoCo's contacts with the world that push, their normals turned towards the moving body."""
  rows = []
  for contact in mujoco_at(model, qpos).contact:
    still = [is_still(model, geom) for geom in contact.geom]
    if any(still) and contact.efc_address >= 0:
      moving = contact.geom[still.index(False)]
      normal = contact.frame[:3] * (1 if still[0] else -1)
      rows.append([model.geom_bodyid[moving], contact.dist, *normal, *contact.pos, *contact.frame[3:6]])
  return np.array(rows).reshape(-1, WIDTH - 1)


@pytest.mark.parametrize("name", ["static_shapes", "margins", "impedance", "gymnasium/ant"])
def test_contacts_are_mujocos(name):
  model = load(name)
  states = random_states(model, 24)
  counts = []
  for qpos, found in zip(states.qpos, find(model, states), strict=True):
    expected = expect(model, qpos)
    assert_same_rows(found, expected)
    counts.append(len(expected))
  assert sum(counts) > 10
  assert min(counts) < max(counts)


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


@pytest.mark.parametrize("shape", ['type="sphere" size="0.1"', 'type="plane" size="1 1 1" pos="0 0 0.1"'])
def test_contacts_begin_at_the_margin(shape):
  model = load_model(f"""<mujoco><worldbody><geom {shape} margin="0.05"/>
    <body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>""")
  states = random_states(model, 2)
  states.qpos[:] = model.qpos0
  states.qpos[:, 2] = 0.24, 0.26
  contacts = find(model, states)
  assert [len(found) for found in contacts] == [1, 0]
  assert contacts[0][0, 1] == pytest.approx(0.04)


def test_a_group_has_room_for_every_candidate_of_one_pair():
  """Capsules cross in one lane, and lie along each other with different ends in the others."""
  model = load_model("""<mujoco><worldbody><geom type="capsule" size="0.1 0.3"/>
    <body><freejoint/><geom type="capsule" size="0.1 0.3"/></body></worldbody></mujoco>""")
  states = random_states(model, 3)
  states.qpos[:] = model.qpos0
  states.qpos[:, 0], states.qpos[:, 2] = 0.19, (0.0, 0.3, -0.3)
  states.qpos[0, 3:] = [0.8, 0.6, 0, 0]
  contacts = find(model, states)
  assert [len(found) for found in contacts] == [1, 2, 2]
  for qpos, found in zip(states.qpos, contacts, strict=True):
    assert_same_rows(found, expect(model, qpos))


def test_parallel_capsules_find_room_for_all_their_contacts():
  """A capsule lies along a fixed one, a plane is far below: two contacts, at the ends of the overlap."""
  model = load_model(SCENE)
  states = random_states(model, 1)
  states.qpos[0] = [1.15, 0, 0, 1, 0, 0, 0, 0]
  expected = expect(model, states.qpos[0])
  (found,) = find(model, states)
  assert len(expected) == 5
  assert_same_rows(found, expected)
