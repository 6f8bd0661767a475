"""Tips of arms: sites and frames by their names, and grippers that are no part of the arm."""

import pytest

from physics.robot import read_arm
from tests.physics.robot.arms import FINGERS, JAW, asked, mjcf, urdf


@pytest.mark.parametrize("hand", [FINGERS, JAW, ""], ids=["two fingers", "a jaw", "no gripper"])
def test_a_gripper_is_held(hand, tmp_path):
  text = mjcf(hand=hand, actuators=False)
  arm, _ = read_arm(asked(tmp_path, text))
  assert arm.joints == ("turn", "shoulder", "elbow")
  assert arm.held == {FINGERS: ("left", "right"), JAW: ("gripper",), "": ()}[hand]


def test_a_last_joint_that_opens_no_gripper_is_one_of_the_arm(tmp_path):
  arm, _ = read_arm(asked(tmp_path, mjcf(hand=JAW.replace("gripper", "wrist"), actuators=False)))
  assert arm.joints == ("turn", "shoulder", "elbow", "wrist")


def test_a_gripper_moves_if_it_is_asked_to(tmp_path):
  names = ("turn", "shoulder", "elbow", "gripper")
  arm, _ = read_arm(asked(tmp_path, mjcf(hand=JAW, actuators=False), joints=names))
  assert arm.joints == names


def test_of_two_arms_on_a_torso_one_reaches(tmp_path):
  text = mjcf(hand=FINGERS, actuators=False)
  start, end = text.index('<body name="turn_link"'), text.index("</body></worldbody>")
  first = text[start:end]
  second = first
  for name in ("turn", "shoulder", "elbow", "hand", "left", "right", "tool"):
    second = second.replace(f'"{name}', f'"other_{name}')
  both = first + second.replace('pos="0 0 0.1"', 'pos="0 0.5 0.1"', 1)
  arm, _ = read_arm(asked(tmp_path, text[:start] + both + text[end:]))
  assert arm.joints == ("turn", "shoulder", "elbow")
  given = {"site": "other_tool_site"}
  arm, _ = read_arm(asked(tmp_path, text[:start] + both + text[end:], **given))
  assert arm.joints == ("other_turn", "other_shoulder", "other_elbow")


@pytest.mark.parametrize(
  ("sites", "tip"),
  [
    (("mark", "ee"), "site 'ee'"),
    (("ee_x", "ee"), "site 'ee'"),
    (("attachment_site", "pinch"), "site 'pinch'"),
    (("wheel",), "frame of body 'hand'"),
    ((), "frame of body 'hand'"),
  ],
)
def test_a_site_is_the_tip_by_its_name(sites, tip, tmp_path):
  marks = "".join(f'<site name="{name}" pos="0 0 0.1"/>' for name in sites)
  arm, _ = read_arm(asked(tmp_path, mjcf(tip=marks)))
  assert arm.tip == tip


@pytest.mark.parametrize(("tool", "tip"), [("ee_link", "ee_link"), ("plate", "elbow_link")])
def test_a_fixed_link_is_the_tip_by_its_name(tool, tip, tmp_path):
  arm, _ = read_arm(asked(tmp_path, urdf(tool)))
  assert arm.tip == f"frame of body '{tip}'"
