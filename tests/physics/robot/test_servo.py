"""Servos: gains of the file stay, others follow from weight and torque."""

import pytest

from physics.robot import read_legged
from physics.robot.servo import stiffness_of
from tests.physics.robot.robots import asked, mjcf


def test_servos_of_the_file_keep_their_gains_and_limits(tmp_path):
  text = mjcf().replace("<motor ", '<position kp="40" kv="3" forcerange="-20 20" ').replace(' gear="10"', "")
  text = text.replace(' ctrlrange="-3 3"', "")
  robot, spec = read_legged(asked(tmp_path, text))
  assert robot.stiffness.tolist() == [40.0] * 8
  assert robot.damping.tolist() == [3.0] * 8
  assert robot.effort.tolist() == [20.0] * 8
  assert spec.copy().compile().actuator("fl_knee").forcerange.tolist() == [-20.0, 20.0]
  assert not any("no servo" in doubt for doubt in robot.doubts)


def test_a_servo_behind_a_gear_has_its_gains_at_the_joint(tmp_path):
  text = mjcf().replace("<motor ", '<position kp="0.4" kv="0.03" forcerange="-2 2" ')
  robot, _ = read_legged(asked(tmp_path, text.replace(' ctrlrange="-3 3"', "")))
  assert robot.stiffness == pytest.approx([40.0] * 8)
  assert robot.damping == pytest.approx([3.0] * 8)
  assert robot.effort == pytest.approx([20.0] * 8)


def test_stiffness_carries_the_weight_within_what_the_torque_allows(tmp_path):
  robot, _ = read_legged(asked(tmp_path, mjcf()))
  carrying = stiffness_of(9.81 * robot.mass, robot.leg_length, 4)
  assert carrying == pytest.approx(9.81 * robot.mass * robot.leg_length)
  assert robot.stiffness == pytest.approx([max(carrying, 30.0)] * 8)  # 30 N m at a radian
  assert robot.damping == pytest.approx(robot.stiffness / 40)
  weak, _ = read_legged(asked(tmp_path / "..", mjcf().replace('ctrlrange="-3 3"', 'ctrlrange="-1 1"')))
  assert weak.stiffness == pytest.approx([20.0] * 8)  # 10 N m at half a radian


def test_two_legs_are_softer_than_four():
  assert stiffness_of(100.0, 1.0, 2) == pytest.approx(30.0)
