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
  text = mjcf(tip="", hand=JAW.replace("gripper", "wrist"), actuators=False)
  arm, _ = read_arm(asked(tmp_path, text))
  assert arm.joints == ("turn", "shoulder", "elbow", "wrist")


SERVO = '<position name="{name}" joint="{joint}" kp="5"/></actuator>'
EQUAL = '<equality><joint joint1="right" joint2="left"/></equality>'


@pytest.mark.parametrize(
  ("hand", "joint", "name", "given"),
  [
    (FINGERS, "left", "close", {}),
    (
      FINGERS.replace("</body>", '<body name="pad"><joint name="pad"/><geom size="0.01"/></body></body>', 1),
      "right",
      "close",
      {"after": EQUAL},
    ),
    (JAW.replace('"gripper"', '"six"'), "six", "gripper_motor", {"tip": ""}),
    (JAW.replace('"gripper"', '"six"'), "six", "six", {}),
  ],
  ids=["one of two fingers is driven", "an equality", "the name of an actuator", "it moves no tip"],
)
def test_a_driven_finger_or_jaw_is_no_joint_of_the_arm(hand, joint, name, given, tmp_path):
  text = mjcf(hand=hand, **given)
  text = text.replace("</actuator>", SERVO.format(name=name, joint=joint))
  arm, _ = read_arm(asked(tmp_path, text))
  assert arm.joints == ("turn", "shoulder", "elbow")
  assert joint in arm.held


def fingers(count):
  """Return fingers of three joints."""
  link = """<body name="{0}_{1}" pos="0 0 0.04"><joint name="{0}_{1}" axis="0 1 0" range="0 90"/>
    <geom size="0.01"/>"""
  names = (f"finger {number}" for number in range(count))
  return "".join("".join(link.format(name, k) for k in range(3)) + "</body>" * 3 for name in names)


def test_a_hand_is_no_arm_unless_a_finger_is_named(tmp_path):
  text = f"""<mujoco><compiler autolimits="true"/><worldbody><body name="palm" pos="0 0 0.5">
    <geom size="0.03"/>{fingers(4)}</body></worldbody></mujoco>"""
  told = "4 chains of joints branch off at 'palm', like fingers or limbs: name the tip of one as env.site=<"
  with pytest.raises(ValueError, match=told):
    read_arm(asked(tmp_path, text))
  arm, _ = read_arm(asked(tmp_path, text, site="finger 2_2"))
  assert arm.joints == ("finger 2_0", "finger 2_1", "finger 2_2")


def test_a_hand_at_an_arm_is_held(tmp_path):
  arm, _ = read_arm(asked(tmp_path, mjcf(hand=fingers(3), actuators=False)))
  assert arm.joints == ("turn", "shoulder", "elbow")
  assert len(arm.held) == 9


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
  assert (
    "another arm stays at home, from 'other_turn_link' on: env.site=<its tip> reaches with it" in arm.doubts
  )
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
