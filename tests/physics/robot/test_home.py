"""Home poses: keyframes in which a robot stands, and poses that are found."""

import re

import numpy as np
import pytest

from physics.robot import read_legged
from tests.physics.robot.robots import BIPED, asked, mjcf

STANDING = "0 0 0.35 1 0 0 0 " + "0.6 -1.2 " * 4
LYING = "0 0 0.06 1 0 0 0 " + "1.4 -2.6 " * 4
UPSIDE_DOWN = "0 0 1 0 1 0 0 " + "0.6 -1.2 " * 4


def keys(**poses):
  rows = "".join(f'<key name="{name}" qpos="{pose}"/>' for name, pose in poses.items())
  return mjcf(after=f"<keyframe>{rows}</keyframe>")


def test_a_keyframe_is_taken_and_put_onto_the_floor(tmp_path):
  robot, _ = read_legged(asked(tmp_path, keys(first=UPSIDE_DOWN, stand=STANDING)))
  assert robot.home == "stand"
  assert robot.stance.tolist() == [0.6, -1.2] * 4
  assert robot.height == pytest.approx(0.2 * 2 * np.cos(0.6) + 0.02, abs=1e-3)


def test_no_robot_begins_lying_unless_it_is_asked_to(tmp_path):
  text = keys(home=LYING)
  robot, _ = read_legged(asked(tmp_path, text))
  assert robot.home == "found"
  assert any("lies in the keyframe 'home'" in doubt for doubt in robot.doubts)
  robot, _ = read_legged(asked(tmp_path, text, home="home"))
  assert robot.home == "home"


def test_knees_of_a_dog_that_bend_either_way_bend_backwards(tmp_path):
  robot, _ = read_legged(asked(tmp_path, mjcf().replace('range="-150 -10"', 'range="-150 150"')))
  assert (robot.stance.reshape(4, 2)[:, 1] < -0.5).all()
  assert (robot.stance.reshape(4, 2)[:, 0] > 0.3).all()


def test_feet_of_a_pose_that_is_found_are_below_the_hips(tmp_path):
  robot, _ = read_legged(asked(tmp_path, mjcf(), stiffness=1e4))
  hip, knee = robot.stance.reshape(4, 2).T
  np.testing.assert_allclose(np.sin(hip) + np.sin(hip + knee), 0, atol=0.02)
  assert robot.height == pytest.approx(0.72 * 0.4 + 0.02, abs=0.01)


def test_both_legs_of_a_pose_that_is_found_bend_alike(tmp_path):
  """The second leg was bent below the weight of a robot whose first leg was bent already."""
  text = re.sub("<keyframe>.*</keyframe>", "", BIPED.read_text(), flags=re.DOTALL)
  robot, _ = read_legged(asked(tmp_path, text))
  assert robot.home == "found"
  partners, signs = robot.mirrored
  np.testing.assert_allclose(robot.angles, np.array(signs) * robot.angles[partners], atol=1e-6)
