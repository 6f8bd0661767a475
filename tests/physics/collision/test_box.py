"""Boxes with spheres and capsules, against MuJoCo's contacts."""

import numpy as np
import pytest

from physics.load import load_model
from tests.physics.collision.scene import found_contacts, mujoco_contacts
from tests.physics.oracle import assert_same_rows

BOX = 'type="box" size="0.3 0.2 0.15"'
SHAPES = {
  "sphere": 'size="0.15"',
  "capsule": 'type="capsule" size="0.1 0.4"',
  "long capsule": 'type="capsule" size="0.03 1.5"',
  "short capsule": 'type="capsule" size="0.25 0.02"',
}


def scene(still, moving, margin=0.0):
  """Return a model of a free geom and one that stands still, turned and away from the origin."""
  return load_model(f"""<mujoco><worldbody>
    <geom {still} pos="1 -2 3" euler="20 30 -40" margin="{margin}"/>
    <body><freejoint/><geom {moving} margin="{margin}"/></body></worldbody></mujoco>""")


def random_poses(count, spread):
  random = np.random.default_rng(0)
  place = np.array([1, -2, 3]) + random.normal(scale=spread, size=(count, 3))
  return np.hstack([place, random.normal(size=(count, 4))])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("margin", [0, 0.05])
def test_contacts_are_mujocos(shape, margin):
  model, counts, qpos = scene(BOX, SHAPES[shape], margin), [], random_poses(400, 0.35)
  for state, found in zip(qpos, found_contacts(model, qpos), strict=True):
    expected = mujoco_contacts(model, state)
    assert_same_rows(found, expected)
    counts.append(len(expected))
  assert min(np.bincount(counts)) > 5
  assert max(counts) == (1 if shape == "sphere" else 2)


def test_a_box_may_be_the_one_that_moves():
  model, qpos = scene(SHAPES["capsule"], BOX), random_poses(200, 0.35)
  found = found_contacts(model, qpos)
  for state, rows in zip(qpos, found, strict=True):
    assert_same_rows(rows, mujoco_contacts(model, state))
  assert sum(map(len, found)) > 50


LYING = (0.5**0.5, 0, 0.5**0.5, 0)  # along x
UPRIGHT_SCENE = """<mujoco><worldbody><geom type="box" size="0.3 0.2 0.1"/>
  <body><freejoint/><geom {}/></body></worldbody></mujoco>"""
CAPSULE_CASES = {  # pose, and how many contacts
  "lies on the face": ((0.02, 0.01, 0.19, *LYING), 2),
  "hangs over": ((0.25, 0.01, 0.19, *LYING), 2),
  "lies askew": ((0.02, 0.01, 0.19, 0.92, -0.39, 0.92, 0.39), 2),
  "lies on an edge": ((0.02, 0.22, 0.19, *LYING), 2),
  "stands on the face": ((0.05, 0.02, 0.39, 1, 0, 0, 0), 1),
  "leans on an edge": ((0.38, 0.05, 0.15, 0.95, 0, 0.3, 0), 1),
  "leans on a corner": ((0.36, 0.24, 0.15, 0.95, 0.2, 0.3, 0), 1),
  "nearly lies on the face": ((0.02, 0.01, 0.19, *np.add(LYING, (0, 0, 1e-5, 0))), 2),
  "ends inside": ((0.02, 0.01, 0.25, 1, 0, 0, 0), 1),
  "beyond reach": ((0.02, 0.01, 0.25, *LYING), 0),
}


@pytest.mark.parametrize("case", CAPSULE_CASES)
def test_capsules_at_rest_touch_where_mujocos_do(case):
  model, (pose, count) = (
    load_model(UPRIGHT_SCENE.format('type="capsule" size="0.1 0.2"')),
    CAPSULE_CASES[case],
  )
  expected = mujoco_contacts(model, np.array(pose))
  assert len(expected) == count
  assert_same_rows(found_contacts(model, [pose])[0], expected)


@pytest.mark.parametrize(
  "pose", [(-0.37, -0.22, 0.4, -0.5, 0.1, -1.5, 0.7), (-0.32, 0.41, 0.21, -0.4, 0.6, 0.3, -0.6)]
)
def test_a_capsule_whose_end_is_nearest_to_a_corner_touches_where_mujocos_does(pose):
  """An edge counts as its end if it is limited after the capsule is."""
  model = load_model(f"""<mujoco><worldbody><geom {BOX}/>
    <body><freejoint/><geom {SHAPES["short capsule"]}/></body></worldbody></mujoco>""")
  expected = mujoco_contacts(model, np.array(pose))
  assert len(expected) > 0
  assert_same_rows(found_contacts(model, [pose])[0], expected)


BAR = 'type="capsule" size="0.1 0.5"'


@pytest.mark.parametrize("tilt", [0, 1e-9, -1e-9, 1e-7, -1e-7])
@pytest.mark.parametrize("side", [0.01, 0.19, 0.22])
def test_a_bar_across_a_box_touches_at_both_sides(tilt, side):
  """Also where rounding decides whether MuJoCo finds one contact or both."""
  model = load_model(UPRIGHT_SCENE.format(BAR))
  (found,) = found_contacts(model, [[0.02, side, 0.18, *np.add(LYING, (tilt, 0, -tilt, 0))]])
  assert len(found) == 2
  expected = mujoco_contacts(model, np.array([0.02, side, 0.18, *np.add(LYING, (1e-5, 0, -1e-5, 0))]))
  assert_same_rows(found[:, 1:8], expected[:, 1:8], 1e-4)


@pytest.mark.parametrize(
  "place", [(0.25, 0, 0), (-0.25, 0.02, 0.01), (0, 0.17, 0), (0.1, -0.19, 0.05), (0, 0.05, -0.08)]
)
def test_a_sphere_inside_leaves_by_the_nearest_face(place):
  model, pose = load_model(UPRIGHT_SCENE.format(SHAPES["sphere"])), np.array([*place, 1, 0, 0, 0])
  (found,) = found_contacts(model, [pose])
  assert_same_rows(found, mujoco_contacts(model, pose))
  assert found[0, 1] < -0.15


def test_what_is_not_a_number_touches_nothing():
  for shape in ("sphere", "capsule"):
    model = load_model(UPRIGHT_SCENE.format(SHAPES[shape]))
    (found,) = found_contacts(model, [[np.nan, 0, 0, 1, 0, 0, 0]])
    assert len(found) == 0
