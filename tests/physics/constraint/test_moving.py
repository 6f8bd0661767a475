"""Contacts between moving bodies, against MuJoCo's."""

import numpy as np
import pytest

from physics.collision import family
from physics.collision.family import families
from physics.constraint.moving import (
  common_origin,
  find_moving_contacts,
  moving_capacity,
  moving_pairs,
  words,
)
from physics.constraint.world import is_still
from physics.dynamics.kinematics import poses
from physics.load import load_model
from physics.parity import States, random_states
from physics.trace.trace import has_bit, where
from tests.physics.conftest import load
from tests.physics.oracle import assert_same_rows, collect, evaluate, mujoco_at


def find(model, states, capacity=16):
  """Return for every state the contacts found, and how many found no slot.

  A contact's row: bodies pushed, bodies that own its geoms (back: -1, forth: 1), distance, normal, point.
  """
  moving = moving_pairs(model)
  width = 8 + len(moving.bodies) + len(moving.owners)

  def signed(entry, back, forth, count):
    bits = [[has_bit(entry[f"{name}{k // 31}"], k % 31) for k in range(count)] for name in (forth, back)]
    return [where(plus, 1.0, where(minus, -1.0, 0.0)) for plus, minus in zip(*bits, strict=True)]

  def traced(program, *qpos):
    p = poses(model, list(qpos))
    found = find_moving_contacts(program, model, p, moving, capacity)
    origin = common_origin(model, p, moving)

    def describe(entry):
      point = [x + o for x, o in zip(entry.vector("point"), origin, strict=True)]
      pushed = signed(entry, "loses", "gains", len(moving.bodies))
      owners = signed(entry, "owner1", "owner2", len(moving.owners))
      return [entry["weight"], *pushed, *owners, entry["distance"], *entry.vector("normal"), *point]

    return [*collect(program, found, describe, width), found.dropped[0]]

  table = evaluate(traced, *states.qpos.T).T
  slots = table[:, :-1].reshape(len(states), capacity, width)
  return [rows[rows[:, 0] > 0, 1:] for rows in slots], table[:, -1]


def jointed_ancestors(model, body):
  return {body, *jointed_ancestors(model, model.body_parentid[body])} if body else set()


def expect(model, qpos):
  """Return MuJoCo's contacts between moving bodies that push, in the same form."""
  moving, rows = moving_pairs(model), []
  for contact in mujoco_at(model, qpos).contact:
    if contact.efc_address < 0 or any(is_still(model, geom) for geom in contact.geom):
      continue
    one, two = (int(model.geom_bodyid[geom]) for geom in contact.geom)
    above = jointed_ancestors(model, one), jointed_ancestors(model, two)
    pushed = [(body in above[1]) - (body in above[0]) for body in moving.bodies]
    owners = [(body == two) - (body == one) for body in moving.owners]
    rows.append([*pushed, *owners, contact.dist, *contact.frame[:3], *contact.pos])
  return np.array(rows).reshape(-1, 7 + len(moving.bodies) + len(moving.owners))


HEAP = "".join(
  f"""<body><freejoint/><geom type="cylinder" size="0.1 {0.06 + 0.02 * k}" margin="{0.01 * k}"
    friction="{0.5 + 0.1 * k}" gap="{0.005 * k}"/></body>"""
  for k in range(5)
)


STONES = [np.random.default_rng(k).normal(scale=0.1, size=(8 + 12 * k, 3)) for k in range(5)]
MESHES = "".join(
  f'<mesh name="{k}" vertex="{" ".join(map(str, points.ravel()))}"/>' for k, points in enumerate(STONES)
)
ROCKS = "".join(f'<body><freejoint/><geom type="mesh" mesh="{k}"/></body>' for k in range(5))


@pytest.mark.parametrize("bodies", [HEAP, ROCKS], ids=["cylinders", "meshes"])
def test_lanes_share_near_pairs_and_every_environment_finds_its_own_contacts(bodies, monkeypatch):
  """Contacts are those of a search in which lanes wait for each other, to the last bit."""
  text = f"<mujoco><asset>{MESHES}</asset><worldbody>{bodies}</worldbody></mujoco>"
  model, random = load_model(text), np.random.default_rng(0)
  qpos = np.concatenate([random.normal(scale=0.15, size=(8, 5, 3)), random.normal(size=(8, 5, 4))], axis=2)
  states, results = States(qpos.reshape(8, -1), np.zeros((8, model.nv)), np.zeros((8, 0))), []
  for least, most in ((family.GATHERED, family.ROUND), (family.GATHERED, 2), (11, 2)):
    monkeypatch.setattr(family, "GATHERED", least)
    monkeypatch.setattr(family, "ROUND", most)
    (only,) = families(model, moving_pairs(model).pairs, by_lane=True)
    assert only.gathered == (least < 11)
    results.append(find(model, states, 40))
  (together, none), *others = results
  for each, _ in others:
    for one, two in zip(together, each, strict=True):
      np.testing.assert_array_equal(one, two)
  assert len({len(rows) for rows in together}) > 2
  assert not none.any()


def test_contacts_of_shared_pairs_are_those_of_the_environment_alone():
  model, random = load_model(f"<mujoco><worldbody>{HEAP}</worldbody></mujoco>"), np.random.default_rng(1)
  qpos = np.concatenate([random.normal(scale=0.15, size=(3, 5, 3)), random.normal(size=(3, 5, 4))], axis=2)
  states = States(qpos.reshape(3, -1), np.zeros((3, model.nv)), np.zeros((3, 0)))
  together, _ = find(model, states, 40)
  for k, rows in enumerate(together):
    one = slice(k, k + 1)
    (alone,), _ = find(model, States(states.qpos[one], states.qvel[one], states.ctrl[one]), 40)
    np.testing.assert_array_equal(rows, alone)


def test_the_deepest_contacts_keep_the_slots_and_the_others_are_counted():
  model = load("self_contact")
  states = random_states(model, 64)
  roomy, _ = find(model, states)
  tight, dropped = find(model, states, capacity=1)
  for all_found, found, missing in zip(roomy, tight, dropped, strict=True):
    assert len(found) == min(1, len(all_found))
    assert len(found) + missing == len(all_found)
    np.testing.assert_array_equal(found, all_found[np.argsort(all_found[:, -7])][:1])
  assert dropped.max() > 0


def test_parallel_capsules_touch_at_two_points_between_other_lanes():
  """Only the second environment's capsules are parallel; the third's do not touch."""
  model = load_model("""<mujoco><worldbody>
    <body><freejoint/><geom type="capsule" size="0.1 0.3"/></body>
    <body pos="0.15 0 0"><freejoint/><geom type="capsule" size="0.1 0.3"/></body>
  </worldbody></mujoco>""")
  states = random_states(model, 3)
  states.qpos[:] = model.qpos0
  states.qpos[0, 10:] = [0.8, 0.6, 0, 0]
  states.qpos[2, 7] = 1.0
  contacts, _ = find(model, states)
  assert [len(found) for found in contacts] == [1, 2, 0]
  for qpos, found in zip(states.qpos, contacts, strict=True):
    assert_same_rows(found, expect(model, qpos))


def test_common_ancestors_are_not_pushed():
  model = load("self_contact")
  moving = moving_pairs(model)
  trunk, hands = model.body_id("trunk"), (model.body_id("left_hand"), model.body_id("right_hand"))
  assert trunk not in moving.bodies
  assert set(hands) <= set(moving.bodies)
  assert trunk in moving.owners
  assert moving.friction
  still = load_model("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
  assert moving_pairs(still).pairs == ()


def test_sets_become_words_of_31_bits():
  assert words({3, 9}, (9, 5, 3)) == [0b101]
  order = tuple(range(100, 140))
  assert words({100, 130, 131, 139}, order) == [1 | 1 << 30, 1 | 1 << 8]
  assert words(set(), order) == [0, 0]


def free_bodies(count, geom):
  body = f"<body><freejoint/><geom {geom}/></body>"
  return load_model(f"<mujoco><worldbody>{body * count}</worldbody></mujoco>")


@pytest.mark.parametrize(
  ("count", "geom", "capacity"),
  [
    (2, 'size="0.1"', 1),  # as many as there are pairs
    (4, 'type="capsule" size="0.1 0.2"', 12),  # as many as all pairs can have
    (10, 'size="0.1"', 16),  # what all have
    (40, 'size="0.1"', 40),  # every geom in touch with two others
    (40, 'type="box" size="0.1 0.1 0.1"', 256),  # the bound
  ],
)
def test_capacity_follows_from_the_model(count, geom, capacity):
  model = free_bodies(count, geom)
  assert moving_capacity(model, moving_pairs(model)) == capacity


@pytest.mark.parametrize(("gap", "capacity"), [(1e-3, 54), (-1e-3, 54), (0.02, 27)])
def test_capacity_has_room_for_what_is_packed(gap, capacity):
  """27 balls in a cube touch 54 times, more than twice each."""
  places = [
    f'<body pos="{x} {y} {z}"><freejoint/><geom size="0.1"/></body>'
    for x, y, z in np.stack(np.meshgrid(*[(0.2 + gap) * np.arange(3)] * 3), -1).reshape(-1, 3)
  ]
  model = load_model(f"<mujoco><worldbody>{''.join(places)}</worldbody></mujoco>")
  assert moving_capacity(model, moving_pairs(model)) == capacity


@pytest.mark.parametrize(("joint", "capacity"), [("slide", 144), ("free", 24)])
def test_capacity_has_room_for_what_overlaps_at_first(joint, capacity):
  """Two arms of a dozen balls in one place: fixed ones begin in each other, free ones wait to be spread."""
  balls = "".join(f'<geom size="0.1" pos="{0.01 * x} 0 0"/>' for x in range(12))
  arm = f'<body><joint type="{joint}" range="-200 200"/>{balls}</body>'
  model = load_model(f"<mujoco><worldbody>{arm * 2}</worldbody></mujoco>")
  assert moving_capacity(model, moving_pairs(model)) == capacity


def test_capacity_has_room_for_arms_that_cross():
  """Two arms of twenty balls each turn through each other, where far more touch than two for each ball."""
  arms = [
    f"""<body pos="0 {y} 0"><joint range="-20 20" axis="0 0 1"/>
    {"".join(f'<geom size="0.1" pos="{0.02 * x} 0 0"/>' for x in range(20))}</body>"""
    for y in (0.0, 0.21)
  ]
  model = load_model(f"<mujoco><worldbody>{''.join(arms)}</worldbody></mujoco>")
  assert moving_capacity(model, moving_pairs(model)) > 120
