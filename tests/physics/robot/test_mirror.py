"""Mirror symmetry: by place and axis, else by name, else none."""

import pytest

from physics.robot import read_legged
from physics.robot.mirror import _image
from tests.physics.robot.robots import asked, mjcf


@pytest.mark.parametrize(
  ("name", "image"),
  [
    ("FL_hip_joint", "FR_hip_joint"),
    ("rear_left_knee", "rear_right_knee"),
    ("RR_calf", "RL_calf"),
    ("leftElbow", "rightElbow"),
    ("l_arm", "r_arm"),
    ("knee", "knee"),
  ],
)
def test_names_in_the_mirror(name, image):
  assert _image(name) == image
  assert _image(image) == name


def test_joints_that_turn_the_other_way_have_a_sign(tmp_path):
  turned = mjcf().replace(
    'name="fr_hip" axis="0 1 0" range="-90 90"', 'name="fr_hip" axis="0 -1 0" range="-90 90"'
  )
  robot, _ = read_legged(asked(tmp_path, turned))
  assert robot.mirrored == ([2, 3, 0, 1, 6, 7, 4, 5], [-1, 1, -1, 1, 1, 1, 1, 1])


def test_legs_in_other_places_are_paired_by_name(tmp_path):
  moved = mjcf().replace('name="fl_thigh" pos="0.2 0.1 0"', 'name="fl_thigh" pos="0.3 0.1 0"')
  robot, _ = read_legged(asked(tmp_path, moved))
  assert robot.mirrored == ([2, 3, 0, 1, 6, 7, 4, 5], [1] * 8)


def test_legs_without_a_partner_have_no_mirror(tmp_path):
  moved = mjcf().replace('name="fl_thigh" pos="0.2 0.1 0"', 'name="fl_thigh" pos="0.3 0.1 0"')
  robot, _ = read_legged(asked(tmp_path, moved.replace("fl_", "first_")))
  assert robot.mirrored is None
