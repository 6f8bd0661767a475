"""Capsules on and beside cylinders, against MuJoCo's contacts; test_narrow.py compares random poses."""

import numpy as np
import pytest

from physics.load import load_model
from tests.physics.collision.scene import (
  assert_contacts_are_mujocos,
  assert_touches_as_mujoco,
  found_contacts,
  mujoco_contacts,
  random_poses,
)
from tests.physics.oracle import assert_same_rows

RADIUS, HALF = 0.3, 0.2


def scene(geom, margin=0.0, euler="20 30 -40"):
  """Return a model of a free geom and a cylinder that stands still; MuJoCo's tolerance is next to nothing."""
  return load_model(f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="1000"/><worldbody>
    <geom type="cylinder" size="{RADIUS} {HALF}" euler="{euler}" margin="{margin}"/>
    <body><freejoint/><geom {geom} margin="{margin}"/></body></worldbody></mujoco>""")


def test_thin_capsules_touch_where_mujocos_do():
  """Normals, and the points along them, are as exact as the number of steps allows; distances are exact."""
  model = scene('type="capsule" size="0.01 0.4"')
  assert sum(assert_contacts_are_mujocos(model, random_poses(300, 0.4), 3e-3)) > 60


def lying_poses(count):
  """Return poses of capsules near the caps, almost parallel to them."""
  random = np.random.default_rng(0)
  turn, tilt = random.uniform(0, np.pi, count), 0.5 * (np.pi / 2 + random.uniform(-0.1, 0.1, count))
  rotation = np.column_stack(
    [np.cos(tilt), -np.sin(turn) * np.sin(tilt), np.cos(turn) * np.sin(tilt), 0 * turn]
  )
  place = random.uniform((-0.6, -0.6, 0.22), (0.6, 0.6, 0.32), (count, 3))
  return np.hstack([place * [[1, 1, side] for side in random.choice([-1, 1], count)], rotation])


@pytest.mark.parametrize(("size", "margin"), [("0.1 0.4", 0.02), ("0.1 0.1", 0)])
def test_capsules_lie_on_caps_as_mujocos_do(size, margin):
  model = scene(f'type="capsule" size="{size}"', margin, "0 0 0")
  assert min(np.bincount(assert_contacts_are_mujocos(model, lying_poses(400), 1e-4))) > 30


CASES = {  # pose of an upright scene, and how many contacts
  "stands on the cap": ((0.05, 0.02, 0.69, 1, 0, 0, 0), 1),
  "stands upside down below": ((0.05, 0.02, -0.69, 0, 1, 0, 0), 1),
  "leans on the rim": ((0.42, 0.03, 0.2, 0.95, 0, 0.3, 0), 1),
  "ends at the mantle": ((0.79, 0.03, 0.05, 0.5**0.5, 0, 0.5**0.5, 0), 1),
  "crosses the mantle": ((0.39, 0.03, 0.05, 0.5**0.5, 0.5**0.5, 0, 0), 1),
  "pierces": ((0.05, 0.02, 0.1, 0.95, 0, 0.3, 0), 1),
  "beyond reach": ((0.45, 0.02, 0.1, 1, 0, 0, 0), 0),
}


def test_capsules_at_rest_touch_where_mujocos_do():
  assert_touches_as_mujoco(scene('type="capsule" size="0.1 0.4"', euler="0 0 0"), CASES, 2e-5)


@pytest.mark.parametrize("x", [0.39, 0.25])
def test_a_capsule_along_the_mantle_touches_where_they_overlap(x):
  """Beside the cylinder or inside of it; the place along the axis is open, as in MuJoCo."""
  model = scene('type="capsule" size="0.1 0.4"', euler="0 0 0")
  pose = np.array([x, 0, 0.3, 1, 0, 0, 0])
  (found,) = found_contacts(model, [pose])
  assert_same_rows(found[:, 1:5], mujoco_contacts(model, pose)[:, 1:5], 1e-6)
  np.testing.assert_allclose(found[0, 5:7], [(x - 0.1 + 0.3) / 2, 0], atol=1e-6)
  assert -0.1 < found[0, 7] < 0.2


def test_a_sphere_on_the_axis_is_pushed_along_x():
  model, pose = scene('size="0.1"', euler="0 0 0"), np.array([0, 0, 0, 1, 0, 0, 0])
  model.mj.geom_size[0, :2] = 0.1, 0.5
  model = load_model(model.mj)
  assert_same_rows(found_contacts(model, [pose])[0], mujoco_contacts(model, pose))
