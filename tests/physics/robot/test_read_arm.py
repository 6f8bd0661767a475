"""Arms from files: our own is found as its task states it by hand, others as they were made."""

import math
import re

import numpy as np
import pytest

import physics
from physics.robot import Asked, read_arm
from tasks.shared import arm as stated
from tests.physics.robot import robots
from tests.physics.robot.arms import JAW, asked, mjcf, urdf

JOINTS = ("turn", "shoulder", "elbow")


def test_our_arm_is_what_its_tasks_say():
  arm, spec = read_arm(Asked(str(robots.ARM)))
  assert arm.joints == stated.JOINTS
  assert arm.held == stated.FINGERS
  assert (arm.site, arm.tip, arm.home) == ("grasp", "site 'grasp'", "home")
  assert arm.angles.tolist() == [0, 0.1963, 0, -2.618, 0, 2.9416, 0.7854]
  assert arm.reach == pytest.approx(0.95, abs=0.02)
  ours, theirs = physics.load_model(spec), physics.load_model(robots.ARM)
  for name in ("actuator_gainprm", "actuator_biasprm", "actuator_forcerange", "actuator_ctrlrange"):
    np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name)[:7])
  assert ours.body_mass.tolist() == theirs.body_mass.tolist()


@pytest.mark.parametrize(
  ("text", "tip"), [(mjcf(), "site 'tool_site'"), (urdf(), "frame of body 'tool0'")], ids=["MJCF", "URDF"]
)
def test_an_arm_without_servos_and_home_gets_both_and_targets_and_holds_still(text, tip, tmp_path):
  arm, spec = read_arm(asked(tmp_path, text))
  assert arm.joints == JOINTS
  assert (arm.tip, arm.home) == (tip, "found")
  assert arm.effort.tolist() == [40.0] * 3
  assert arm.reach == pytest.approx(np.hypot(0.7, 0.1), abs=0.12)  # from the turning joint, 0.1 m lower
  assert any("3 joints have no servo in the file" in doubt for doubt in arm.doubts)
  assert not any("the tip moves" in doubt for doubt in arm.doubts)
  before, later = (robots.at_home(spec, seconds) for seconds in (0.0, 2.0))
  np.testing.assert_allclose(later.site(arm.site).xpos, before.site(arm.site).xpos, atol=2e-3)
  assert ((arm.angles > arm.limits[:, 0]) & (arm.angles < arm.limits[:, 1])).all()
  assert 0.5 < arm.angles[2] < 2.3, "it is not stretched"
  distance = np.linalg.norm(arm.targets - [0, 0, 0.1], axis=1)
  assert len(arm.targets) > 500, "the tip can hold them"
  assert arm.targets[:, 2].min() > 0.05 * arm.reach
  assert 0.25 * arm.reach < distance.min()
  assert distance.max() <= arm.reach + 1e-6
  assert np.ptp(arm.targets, axis=0).min() > arm.reach  # on all sides, low and high


def test_a_joint_that_turns_further_than_once_has_a_turn_about_home_within_its_limits(tmp_path):
  """Places behind the arm are then as far one way as the other."""
  text = mjcf(after='<keyframe><key name="home" qpos="-1.5 5 1 0 0"/></keyframe>')
  wide = text.replace("-170 170", "-360 360").replace("-100 100", "-360 360")
  arm, _ = read_arm(asked(tmp_path, wide))
  turn, full = math.pi, 2 * math.pi
  np.testing.assert_allclose(arm.limits[:2], [[-1.5 - turn, -1.5 + turn], [0.0, full]])
  free, _ = read_arm(asked(tmp_path / "..", text.replace('range="-170 170"', 'limited="false"')))
  np.testing.assert_allclose(free.limits[0], [-1.5 - turn, -1.5 + turn])


def test_a_weak_arm_has_no_targets_that_it_cannot_hold(tmp_path):
  strong, _ = read_arm(asked(tmp_path, mjcf()))
  weak, _ = read_arm(asked(tmp_path / "..", mjcf().replace('ctrlrange="-40 40"', 'ctrlrange="-4 4"')))
  assert weak.effort.tolist() == [4.0] * 3
  far = [np.hypot(*arm.targets[:, :2].T).max() for arm in (strong, weak)]
  assert far[1] < 0.8 * far[0]


def test_an_arm_that_can_hold_nothing_is_refused(tmp_path):
  text = mjcf().replace('ctrlrange="-40 40"', 'ctrlrange="-0.1 0.1"')
  with pytest.raises(ValueError, match="of 2000 random poses its servos can hold the tip above the floor"):
    read_arm(asked(tmp_path, text))


def test_what_is_asked_for_counts(tmp_path):
  given = {"stiffness": 500.0, "damping": 20.0, "site": "elbow_link", "joints": ("turn", "shoulder")}
  arm, spec = read_arm(asked(tmp_path, mjcf(), **given))
  assert arm.joints == ("turn", "shoulder")
  assert arm.held == ("elbow", "left", "right")
  assert arm.tip == "frame of body 'elbow_link'"
  assert arm.stiffness.tolist() == [500.0] * 2
  assert arm.damping.tolist() == [20.0] * 2
  data = robots.at_home(spec, 0.0)
  np.testing.assert_allclose(data.site("elbow_link").xpos, data.body("elbow_link").xpos)


def test_a_keyframe_is_the_home_pose(tmp_path):
  keys = """<keyframe><key name="rest" qpos="0 0 0.1 0 0"/><key name="home" qpos="0.1 0.5 1 0.01 0.01"/>
    </keyframe>"""
  arm, spec = read_arm(asked(tmp_path, mjcf(after=keys)))
  assert (arm.home, arm.angles.tolist()) == ("home", [0.1, 0.5, 1.0])
  assert robots.at_home(spec, 0.0).body("left_part").xpos[2] > 0
  arm, _ = read_arm(asked(tmp_path, mjcf(after=keys), home="rest"))
  assert (arm.home, arm.angles.tolist()) == ("rest", [0.0, 0.0, 0.1])


def test_the_floor_is_below_the_base_or_far_below_an_arm_that_hangs(tmp_path):
  raised = mjcf().replace('<body name="base">', '<body name="base" pos="0 0 0.8">')
  _, spec = read_arm(asked(tmp_path, raised))
  assert spec.geom("floor").pos[2] == pytest.approx(0.8)
  hanging = mjcf().replace('<body name="base">', '<body name="base" pos="0 0 2" quat="0 1 0 0">')
  arm, spec = read_arm(asked(tmp_path, hanging))
  assert arm.targets[:, 2].min() < 1.5
  assert spec.geom("floor").pos[2] < 1.0


@pytest.mark.parametrize("self_collision", [False, True])
def test_links_collide_with_each_other_where_asked(self_collision, tmp_path):
  _, spec = read_arm(asked(tmp_path, mjcf(hand=JAW), self_collision=self_collision))
  floor = {spec.copy().compile().geom("floor").id}
  pairs = physics.load_model(spec).pairs
  assert any(not {pair.geom1, pair.geom2} & floor for pair in pairs) == self_collision


def test_an_arm_of_which_nothing_collides_reaches_too(tmp_path):
  text = mjcf().replace("<geom ", '<geom contype="0" conaffinity="0" ')
  arm, spec = read_arm(asked(tmp_path, text))
  assert arm.joints == JOINTS
  assert physics.load_model(spec).pairs == ()


@pytest.mark.parametrize(
  ("text", "given", "message"),
  [
    (mjcf(base="<freejoint/>"), {}, "its base floats, so it is no arm.*let it walk by task=walk"),
    ("<mujoco><worldbody/></mujoco>", {}, "no hinge or slide joint moves a part of it, so it cannot reach"),
    (mjcf(), {"site": "tool_sit"}, "env.site: no site or body is named 'tool_sit'; nearest: 'tool_site'"),
    (mjcf(), {"joints": ("elbo",)}, "env.joints: no moved joint is named 'elbo'; nearest: 'elbow'"),
    (mjcf(), {"site": "turn_link"}, "1 joints move the frame of body 'turn_link', and an arm has 2 or more"),
    (mjcf(), {"site": "base"}, "0 joints move the frame of body 'base', and an arm has 2 or more"),
  ],
)
def test_what_cannot_reach_is_said_in_one_line(text, given, message, tmp_path):
  with pytest.raises(ValueError, match=message) as caught:
    read_arm(asked(tmp_path, text, **given))
  assert "\n" not in str(caught.value)


def test_an_arm_on_another_base_is_mentioned(tmp_path):
  text = mjcf(actuators=False)
  start, end = text.index('<body name="base"'), text.index("</worldbody>")
  second = re.sub(r'name="', 'name="other_', text[start:end]).replace("<body", '<body pos="0 1 0"', 1)
  two = text[:end] + second + text[end:]
  arm, _ = read_arm(asked(tmp_path, two))
  assert "another arm is left out, on 'other_base': env.site=<its tip> reaches with it" in arm.doubts
  arm, _ = read_arm(asked(tmp_path, two, site="other_tool_site"))
  assert arm.joints == ("other_turn", "other_shoulder", "other_elbow")


def test_legs_without_a_free_joint_are_no_arm(tmp_path):
  leg = """<body name="{side}_thigh" pos="0 {y} 0"><joint name="{side}_hip" axis="0 1 0" range="-90 90"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3"/><body name="{side}_shank" pos="0 0 -0.3">
    <joint name="{side}_knee" axis="0 1 0" range="-90 0"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3"/><body name="{side}_foot" pos="0 0 -0.33">
    <joint name="{side}_ankle" axis="0 1 0" range="-30 30"/><geom type="box" size="0.1 0.03 0.02"/></body>
    </body></body>"""
  legs = leg.format(side="left", y=0.1) + leg.format(side="right", y=-0.1)
  text = f"""<mujoco><compiler autolimits="true"/><worldbody><body name="torso" pos="0 0 1">
    <geom size="0.1"/>{legs}</body></worldbody></mujoco>"""
  told = re.escape("legs reach the ground (left_foot, right_foot): to walk, add <freejoint/> to 'torso'")
  with pytest.raises(ValueError, match=told):
    read_arm(asked(tmp_path, text))
  arm, _ = read_arm(asked(tmp_path, text, site="left_foot"))
  assert arm.joints == ("left_hip", "left_knee", "left_ankle")
