"""Doubts: of frames, of stiff servos, of poses in which no robot stands."""

import pytest

from physics.robot import read_legged
from tests.physics.robot.robots import asked, mjcf


def test_a_robot_that_faces_along_y_is_doubtful(tmp_path):
  text = mjcf().replace('axis="0 1 0"', 'axis="1 0 0"')
  robot, _ = read_legged(asked(tmp_path, text))
  assert "most joints turn about the trunk's x axis, which should point forwards" in robot.doubts


def test_servos_that_are_too_stiff_for_the_time_step_are_doubtful(tmp_path):
  light = mjcf().replace('damping="0.1"', 'damping="0.1" armature="0.001"')
  robot, _ = read_legged(asked(tmp_path, light, stiffness=2e4))
  assert any("stiff for a time step of 0.005 s: add env.substeps=8" in doubt for doubt in robot.doubts)
  robot, _ = read_legged(asked(tmp_path, mjcf(), stiffness=80.0))
  assert not any("time step" in doubt for doubt in robot.doubts)


def test_a_robot_that_does_not_stand_is_doubtful(tmp_path):
  falls = "at home it falls within a second: give a pose in which it stands as a keyframe"
  robot, _ = read_legged(asked(tmp_path, mjcf(), stiffness=1.0))
  assert falls in robot.doubts
  robot, _ = read_legged(asked(tmp_path, mjcf(), stiffness=80.0))
  assert falls not in robot.doubts


@pytest.mark.parametrize(
  ("servo", "doubt"),
  [
    ('kp="3" forcerange="-30 30"', "8 servos of legs are soft, such as 'fl_hip': 28 N m/rad carry"),
    ('kp="60"', "8 joints of legs have no largest torque, such as 'fl_hip': add a forcerange"),
    ('kp="60" forcerange="-30 30"', None),
  ],
  ids=["soft", "without a limit", "neither"],
)
def test_servos_that_are_soft_or_unlimited_are_doubtful(servo, doubt, tmp_path):
  text = mjcf().replace("<motor ", f'<position kv="3" {servo} ').replace(' gear="10" ctrlrange="-3 3"', "")
  robot, _ = read_legged(asked(tmp_path, text))
  found = [said for said in robot.doubts if "soft" in said or "largest torque" in said]
  assert [doubt in said for said in found] == ([True] if doubt else [])
