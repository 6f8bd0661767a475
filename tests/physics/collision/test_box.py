"""Spheres and capsules on and in boxes, against MuJoCo's contacts; test_narrow.py has random poses."""

import itertools

import numpy as np

from physics.load import load_model
from tests.physics.collision.scene import assert_touches_as_mujoco, found_contacts, mujoco_contacts
from tests.physics.oracle import assert_same_rows

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


def test_capsules_at_rest_touch_where_mujocos_do():
  model = load_model(UPRIGHT_SCENE.format('type="capsule" size="0.1 0.2"'))
  assert_touches_as_mujoco(model, CAPSULE_CASES)


def test_a_capsule_whose_end_is_nearest_to_a_corner_touches_where_mujocos_does():
  """An edge counts as its end if it is limited after the capsule is."""
  model = load_model("""<mujoco><worldbody><geom type="box" size="0.3 0.2 0.15"/>
    <body><freejoint/><geom type="capsule" size="0.25 0.02"/></body></worldbody></mujoco>""")
  above, beside = (-0.37, -0.22, 0.4, -0.5, 0.1, -1.5, 0.7), (-0.32, 0.41, 0.21, -0.4, 0.6, 0.3, -0.6)
  assert_touches_as_mujoco(model, {"above": (above, 2), "beside": (beside, 1)})


def test_a_bar_across_a_box_touches_at_both_sides():
  """Also where rounding decides whether MuJoCo finds one contact or both."""
  model = load_model(UPRIGHT_SCENE.format('type="capsule" size="0.1 0.5"'))
  cases = [*itertools.product((0.01, 0.19, 0.22), (0, 1e-9, -1e-9, 1e-7, -1e-7))]
  poses = [[0.02, side, 0.18, *np.add(LYING, (tilt, 0, -tilt, 0))] for side, tilt in cases]
  for (side, _), found in zip(cases, found_contacts(model, poses), strict=True):
    assert len(found) == 2
    expected = mujoco_contacts(model, np.array([0.02, side, 0.18, *np.add(LYING, (1e-5, 0, -1e-5, 0))]))
    assert_same_rows(found[:, 1:8], expected[:, 1:8], 1e-4)


def test_a_sphere_inside_leaves_by_the_nearest_face():
  model = load_model(UPRIGHT_SCENE.format('size="0.15"'))
  places = [(0.25, 0, 0), (-0.25, 0.02, 0.01), (0, 0.17, 0), (0.1, -0.19, 0.05), (0, 0.05, -0.08)]
  cases = {str(place): ((*place, 1, 0, 0, 0), 1) for place in places}
  assert_touches_as_mujoco(model, cases)
  for (found,) in found_contacts(model, [pose for pose, _ in cases.values()]):
    assert found[1] < -0.15
