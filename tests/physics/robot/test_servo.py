"""Servos: gains of the file stay, others follow from weight and torque."""

import pytest

from physics.robot import read_legged
from physics.robot.servo import stiffness_of
from tests.physics.robot.robots import CORNERS, asked, mjcf


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


TENDONS = "".join(
  f"""<fixed name="{leg}"><joint joint="{leg}_hip" coef="0.5"/><joint joint="{leg}_knee" coef="-2"/>
    </fixed>"""
  for leg in CORNERS
)
LEVEL = '<equality><tendon tendon1="fl"/></equality>'


def test_joints_of_legs_that_tendons_pull_get_servos(tmp_path):
  text = mjcf(actuators=False, after=f"<tendon>{TENDONS}</tendon>{LEVEL}")
  motors = "".join(f'<motor name="{leg}" tendon="{leg}" ctrlrange="-7 7"/>' for leg in CORNERS)
  text = text.replace("</actuator>", f'{motors}<motor joint="fl_hip" ctrlrange="-9 9"/></actuator>')
  robot, spec = read_legged(asked(tmp_path, text))
  assert {*robot.joints} == {f"{leg}_{part}" for leg in CORNERS for part in ("hip", "knee")}
  effort = dict(zip(robot.joints, robot.effort.tolist(), strict=True))
  assert (effort["fl_hip"], effort["fr_hip"], effort["fr_knee"]) == (9.0, 3.5, 14.0)
  assert "7 joints of legs that tendons pull get a servo each instead" in robot.doubts
  mj = spec.copy().compile()
  assert (mj.nu, mj.neq, mj.ntendon) == (8, 1, 1)  # the tendon that an equality needs


def test_joints_that_tendons_pull_outside_of_legs_are_left_alone(tmp_path):
  tail = """<body name="tail" pos="-0.3 0 0"><joint name="tail" axis="0 1 0"/><geom size="0.02"/></body>"""
  text = mjcf(after='<tendon><fixed name="wag"><joint joint="tail" coef="1"/></fixed></tendon>')
  text = text.replace('<body name="fl_thigh"', f'{tail}<body name="fl_thigh"', 1)
  robot, _ = read_legged(asked(tmp_path, text.replace("</actuator>", '<motor tendon="wag"/></actuator>')))
  assert "tail" not in robot.joints
