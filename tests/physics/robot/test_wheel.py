"""Wheels: what is one, what is none, legs on wheels, casters, and wheels that are held."""

import mujoco
import numpy as np
import pytest

from physics.robot.read_legged import read_legged
from tests.physics.robot.robots import CORNERS, TWO, asked, at_home, mjcf, rover, wheel

ROUND = {
  "cylinder": 'type="cylinder" size="0.1 0.02" zaxis="0 1 0"',
  "sphere": 'size="0.1"',
  "ellipsoid": 'type="ellipsoid" size="0.1 0.02 0.1"',
  "capsule": 'type="capsule" size="0.1" fromto="0 -0.01 0 0 0.01 0"',
  "mesh": 'type="mesh" mesh="tyre"',
}
ANGULAR = {
  "box": ('type="box" size="0.1 0.02 0.1"', 'axis="0 1 0"'),
  "off its axis": ('size="0.1" pos="0.02 0 0"', 'axis="0 1 0"'),
  "with limits": (ROUND["cylinder"], 'axis="0 1 0" limited="true" range="-90 90"'),
  "upright axis": ('size="0.1"', 'axis="0 0 1"'),
}


@pytest.mark.parametrize("shape", ROUND.values(), ids=ROUND)
def test_a_round_body_that_turns_freely_is_a_wheel_with_its_speed_servo(shape, tmp_path):
  robot, spec = read_legged(asked(tmp_path, rover(shape)))
  assert robot.rolling == (True,) * 4
  assert [one.joint for one in robot.wheels] == [f"{name}_roll" for name in CORNERS]
  assert robot.wheels[0].radius == pytest.approx(0.1, rel=0.02)
  assert robot.wheels[0].arm == pytest.approx(np.hypot(0.2, 0.16))
  assert (robot.stiffness.tolist(), robot.damping.tolist()) == ([0] * 4, [1] * 4)
  mj = spec.copy().compile()
  mujoco.mj_forward(mj, data := mujoco.MjData(mj))
  data.ctrl[:], data.qvel[-1] = 2.0, 0.5
  mujoco.mj_forward(mj, data)
  assert data.actuator_force.tolist() == pytest.approx([2, 2, 2, 1.5])


@pytest.mark.parametrize(("shape", "joint"), ANGULAR.values(), ids=ANGULAR)
def test_other_feet_are_no_wheels(shape, joint, tmp_path):
  robot, _ = read_legged(asked(tmp_path, rover(shape, joint=joint)))
  assert (robot.rolling, robot.wheels) == ((False,) * 4, ())
  assert (robot.stiffness > 0).all()


def test_a_cylinder_rolls_in_place_of_a_wheels_mesh(tmp_path):
  _, spec = read_legged(asked(tmp_path, rover('type="mesh" mesh="tyre" friction="0.7 0.1 0.1"')))
  mj = spec.copy().compile()
  solid = mj.geom_contype | mj.geom_conaffinity
  discs = np.flatnonzero(mj.geom_type == mujoco.mjtGeom.mjGEOM_CYLINDER)
  assert not solid[mj.geom_type == mujoco.mjtGeom.mjGEOM_MESH].any()
  assert solid[discs].all()
  assert mj.geom_size[discs[0], :2] == pytest.approx([0.1, 0.02], rel=0.02)
  assert mj.geom_friction[discs[0], 0] == 0.7
  assert mj.body_mass[mj.body("fl").id] == pytest.approx(0.5)


def test_legs_on_wheels_bend_with_wheels_that_are_not_posed(tmp_path):
  robot, spec = read_legged(asked(tmp_path, mjcf(foot=wheel(), actuators=False)))
  assert robot.summary().startswith(f"{robot.path}: 4 legs on 4 wheels, 12 joints")
  turned = [robot.joints.index(one.joint) for one in robot.wheels]
  assert not robot.angles[turned].any()
  assert not robot.stance[turned].any()
  assert robot.angles[robot.joints.index("fl_knee")] < -0.5
  expected = robot.mass * robot.wheels[0].radius ** 2 / (4 * 0.05)
  assert robot.damping[turned] == pytest.approx(expected)
  assert at_home(spec).qpos[2] == pytest.approx(robot.height, abs=0.02)


def test_two_wheels_are_below_the_weight(tmp_path):
  robot, spec = read_legged(asked(tmp_path, mjcf(foot=wheel(), actuators=False, corners=TWO)))
  data = at_home(spec, 0.0)
  assert data.body("l_wheel").xpos[0] == pytest.approx(data.subtree_com[1, 0], abs=0.02)
  assert robot.rolling == (True, True)


def test_wheels_are_held_where_only_other_joints_are_asked_for(tmp_path):
  joints = tuple(f"{leg}_{part}" for leg in CORNERS for part in ("hip", "knee"))
  robot, _ = read_legged(asked(tmp_path, mjcf(foot=wheel(), actuators=False), joints=joints))
  assert (robot.joints, robot.rolling, robot.wheels) == (joints, (False,) * 4, ())


def test_a_caster_has_a_joint_of_its_own_or_is_refused(tmp_path):
  caster = '<geom name="caster" size="0.03" pos="-0.2 0 -0.07" mass="0.1"/>'
  swivel = f'<body name="swivel"><joint type="ball"/>{caster}</body>'
  robot, _ = read_legged(asked(tmp_path, rover(corners=TWO, more=swivel)))
  assert (robot.rolling, robot.guarded) == ((True, True), ())
  with pytest.raises(ValueError, match="its trunk touches the ground, which is a fall: give casters joints"):
    read_legged(asked(tmp_path / "..", rover(corners=TWO, more=caster)))


def test_wheels_that_are_not_driven_roll_along(tmp_path):
  text = rover()
  for name in ("rl", "rr"):
    text = text.replace(f'<velocity kv="1" joint="{name}_roll"/>', "")
  robot, _ = read_legged(asked(tmp_path, text))
  assert [one.joint for one in robot.wheels] == ["fl_roll", "fr_roll"]
  assert (robot.guarded, robot.rolling) == ((), (True, True))
