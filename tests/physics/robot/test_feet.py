"""Feet and gaits: of robots with other numbers of legs, with fixed feet, toes and arms."""

import numpy as np
import pytest

from physics.robot import read_legged
from tests.physics.robot.robots import CORNERS, SIX, asked, lowered, mjcf, spider, urdf


def test_six_legs_have_a_tripod_gait(tmp_path):
  robot, _ = read_legged(asked(tmp_path, mjcf(corners=SIX)))
  phases = dict(zip(robot.feet, robot.phases, strict=True))
  tripod = {"fl_foot", "mr_foot", "rl_foot"}
  assert {foot for foot, phase in phases.items() if phase == 0.0} == tripod
  assert robot.mirrored is not None


def test_a_foot_that_is_fixed_to_its_shank_is_found(tmp_path):
  robot, _ = read_legged(asked(tmp_path, urdf()))
  assert robot.feet == robot.feet_bodies == ("fl_shank", "fr_shank", "rl_shank", "rr_shank")
  assert robot.guarded == ("fl_thigh", "fr_thigh", "rl_thigh", "rr_thigh")


def test_toes_belong_to_the_foot_above_them(tmp_path):
  toes = "".join(
    f"""<body name="{{leg}}_toe{side}" pos="0.03 {y} -0.2"><joint name="{{leg}}_toe{side}" axis="0 1 0"
      range="-20 20"/><geom type="sphere" size="0.02" mass="0.02"/></body>"""
    for side, y in (("a", 0.02), ("b", -0.02))
  )
  text = mjcf(foot=f'type="sphere" size="0.005" mass="0.01"/>{toes}<geom name="{{leg}}_foot"')
  robot, _ = read_legged(asked(tmp_path, text))
  assert len(robot.feet) == 4
  assert {body.split("_")[0] for body in robot.feet_bodies} == {"fl", "fr", "rl", "rr"}


def test_other_bodies_of_a_foot_may_touch_the_ground_and_are_mentioned(tmp_path):
  pads = "".join(
    f'<body name="{{leg}}_pad{k}" pos="0 {y} -0.2"><geom type="sphere" size="0.02" mass="0.02"/></body>'
    for k, y in enumerate((-0.03, -0.01, 0.01, 0.03))
  )
  text = mjcf(foot=f'type="sphere" size="0.005" mass="0.01"/>{pads}<geom name="{{leg}}_foot"')
  robot, _ = read_legged(asked(tmp_path, text))
  assert robot.feet_bodies == tuple(f"{leg}_shank" for leg in CORNERS)
  assert robot.guarded == tuple(f"{leg}_thigh" for leg in CORNERS)
  assert "16 more bodies of feet touch the ground unfelt, such as 'fl_pad0': see env.feet" in robot.doubts


def test_an_arm_on_the_trunk_is_no_leg_but_moves(tmp_path):
  arm = """<body name="arm" pos="0.2 0 0.05"><joint name="shoulder" axis="0 1 0" range="-90 90"/>
    <geom type="capsule" size="0.02" fromto="0 0 0 0 0 0.3" mass="0.3"/></body>"""
  text = mjcf().replace('<body name="fl_thigh"', f'{arm}<body name="fl_thigh"', 1)
  text = text.replace("<actuator>", '<actuator><motor name="shoulder" joint="shoulder" gear="5"/>')
  robot, _ = read_legged(asked(tmp_path, text))
  assert len(robot.feet) == 4
  assert robot.joints[0] == "shoulder"
  assert "arm" in robot.guarded
  assert robot.mirrored[0][0] == 0  # it is its own image


def test_legs_do_not_depend_on_where_the_trunk_has_its_origin(tmp_path, tmp_path_factory):
  text = mjcf(actuators=False)
  above, _ = read_legged(asked(tmp_path, text))
  ground, _ = read_legged(asked(tmp_path_factory.mktemp("ground"), lowered(text)))
  assert (ground.feet, ground.legs, ground.home) == (above.feet, above.legs, above.home)
  assert ground.leg_length == pytest.approx(above.leg_length)
  assert ground.angles == pytest.approx(above.angles, abs=1e-6)
  assert ground.height == pytest.approx(above.height - 0.5)
  assert not any("falls" in doubt for doubt in ground.doubts)


@pytest.mark.parametrize(
  "ways",
  [
    lambda x, y: (0, np.sign(y)),  # noqa: ARG005
    lambda x, y: (-1, 0),  # noqa: ARG005
    lambda x, y: (0.7 * np.sign(x), 0.7 * np.sign(y)),
  ],
  ids=["sideways", "backwards", "diagonal"],
)
def test_legs_that_are_drawn_flat_are_found_and_stand(ways, tmp_path):
  robot, _ = read_legged(asked(tmp_path, spider(ways)))
  assert robot.feet == tuple(f"{leg}_shank" for leg in CORNERS)
  assert {len(leg) for leg in robot.legs} == {3}
  assert robot.leg_length > 0.15
  assert robot.mirrored is not None
