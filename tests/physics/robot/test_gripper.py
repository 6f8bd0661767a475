"""Grippers of different kinds: what opens them, how wide, where they grasp, and what is refused."""

import mujoco
import numpy as np
import pytest

from physics.robot import read_arm
from physics.robot.gripper import GRASP, GRIPS
from tests.physics.robot.arms import asked, mjcf, urdf

WRIST = '<joint name="wrist" axis="0 1 0" range="-120 120" damping="0.1"/>'
PAD = '<geom type="box" size="0.01 0.005 0.02" pos="0 {y} 0.03" mass="0.02"/>'
BAR = '<geom type="box" size="0.01 0.005 0.04" pos="0 {y} 0.05" mass="0.05"/>'


def slide(side, axis, low=0, high=0.03):
  """Return a finger that touches the hand's middle at joint position zero."""
  y = 0.005 if side == "left" else -0.005
  return f"""<body name="{side}_finger" pos="0 0 0.05"><joint name="{side}" type="slide" axis="0 {axis} 0"
    range="{low} {high}"/>{PAD.format(y=y)}</body>"""


def jaw(name, y, low, high, axis=1):
  """Return a finger of 9 cm that turns about its root, and is in the hand's middle at zero."""
  return f"""<body name="{name}_finger" pos="0 0 0.05"><joint name="{name}" axis="{axis} 0 0"
    range="{low} {high}"/>{BAR.format(y=y)}</body>"""


def couple(one, other, ratio=1):
  """Return a coupling of two joints."""
  return f'<equality><joint joint1="{one}" joint2="{other}" polycoef="0 {ratio} 0 0 0"/></equality>'


def gripping(hand, *, motors="", after=""):
  """Return an arm with a wrist and a hand; `motors` are the hand's."""
  wrist = '<motor name="wrist" joint="wrist" ctrlrange="-40 40"/>'
  return mjcf(tip=WRIST, hand=hand, after=f"<actuator>{wrist}{motors}</actuator>{after}")


def mimicking():
  """Return an arm as URDF; its gripper has two slides, and the second follows the first."""
  inertial = """<inertial><mass value="0.05"/><inertia ixx="1e-5" iyy="1e-5" izz="1e-5" ixy="0" ixz="0"
    iyz="0"/></inertial>"""
  text = urdf(tool="palm").replace('<link name="palm"/>', f'<link name="palm">{inertial}</link>')
  text = text.replace('name="flange" type="fixed"', 'name="wrist" type="revolute"').replace(
    '<origin xyz="0 0 0.4"/>',
    '<origin xyz="0 0 0.4"/><axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="9" velocity="2"/>',
  )
  for side, y, more in (("left", 1, ""), ("right", -1, '<mimic joint="left"/>')):
    text += f"""<link name="{side}_finger">{inertial}<collision><origin xyz="0 {0.005 * y} 0.03"/><geometry>
      <box size="0.02 0.01 0.04"/></geometry></collision></link><joint name="{side}" type="prismatic">
      <parent link="palm"/><child link="{side}_finger"/><origin xyz="0 0 0.05"/><axis xyz="0 {y} 0"/>
      <limit lower="0" upper="0.03" effort="20" velocity="1"/>{more}</joint>"""
  return text.replace("</robot>", "") + "</robot>"


TENDON = """<tendon><fixed name="both"><joint joint="left" coef="1"/><joint joint="right" coef="1"/></fixed>
  </tendon>"""
SLIDES = slide("left", 1) + slide("right", -1)
KINDS = {
  "two slides": (gripping(SLIDES), ("left", "right"), [0.03, 0.03], 0.06),
  "a slide that opens at its lower end": (
    gripping(slide("left", -1, -0.03, 0) + slide("right", -1)), ("left", "right"), [-0.03, 0.03], 0.06,
  ),
  "one driven, coupled": (
    gripping(SLIDES, motors='<position joint="left" kp="900" kv="20"/>', after=couple("right", "left")),
    ("left",), [0.03], 0.06,
  ),
  "a tendon for both": (
    gripping(SLIDES, motors='<motor tendon="both"/>', after=TENDON + couple("right", "left")),
    ("left", "right"), [0.03, 0.03], 0.06,
  ),
  "mimic": (mimicking(), ("left",), [0.03], 0.06),
}  # fmt: skip


def at_home(spec):
  """Return model and data of an arm at home."""
  model = spec.copy().compile()
  data = mujoco.MjData(model)
  mujoco.mj_resetDataKeyframe(model, data, 0)
  mujoco.mj_forward(model, data)
  return model, data


@pytest.mark.parametrize(("text", "joints", "opened", "width"), KINDS.values(), ids=KINDS)
def test_slides_are_found_with_what_opens_them_and_how_wide(text, joints, opened, width, tmp_path):
  arm, spec = read_arm(asked(tmp_path, text, grips=True))
  gripper = arm.gripper
  assert tuple(servo.joint for servo in gripper.servos) == joints
  assert arm.joints == ("turn", "shoulder", "elbow", "wrist")
  np.testing.assert_allclose(gripper.opened, opened, atol=1e-6)
  np.testing.assert_allclose(gripper.closed, 0.0, atol=1e-6)
  assert gripper.width == pytest.approx(width, abs=2e-3)
  assert gripper.side == pytest.approx(0.6 * width, abs=1e-3)
  model, data = at_home(spec)
  middle, *tips = (data.site(name).xpos for name in (GRASP, *GRIPS))
  np.testing.assert_allclose(np.mean(tips, axis=0), middle, atol=1e-3)
  assert np.linalg.norm(tips[0] - tips[1]) == pytest.approx(width, abs=3e-3)
  hand = model.body("palm" if text.startswith("<robot") else "hand").id
  along = data.xmat[hand].reshape(3, 3).T @ (middle - data.xpos[hand])
  np.testing.assert_allclose(along, [0, 0, 0.1 - 0.4 * gripper.side], atol=2e-3)
  assert data.site(GRASP).xmat[8] < -0.95, "the hand points down"


def test_a_gripper_closes_to_the_cube_and_holds_it(tmp_path):
  arm, spec = read_arm(asked(tmp_path, KINDS["one driven, coupled"][0], grips=True))
  model, data = at_home(spec)
  data.ctrl[-1] = arm.gripper.closed[0]
  for _ in range(200):
    mujoco.mj_step(model, data)
  tips = [data.site(name).xpos for name in GRIPS]
  assert np.linalg.norm(tips[0] - tips[1]) < 2e-3, "the coupled finger follows"


def test_a_jaw_that_turns_opens_no_further_than_it_can_grasp(tmp_path):
  """A single jaw faces the hand's fixed finger, as on SO-101."""
  hand = BAR.format(y=-0.005).replace('0.05" mass', '0.1" mass') + jaw("gripper", 0.005, -100, 10)
  arm, spec = read_arm(asked(tmp_path, gripping(hand, motors='<motor joint="gripper"/>'), grips=True))
  gripper = arm.gripper
  assert [servo.joint for servo in gripper.servos] == ["gripper"]
  assert -0.8 < gripper.opened[0] < -0.5
  assert gripper.closed[0] == pytest.approx(np.radians(10))
  assert gripper.width == pytest.approx(2 * 0.085 * np.sin(0.35), rel=0.15)
  _, data = at_home(spec)
  moved, fixed = (data.site(name).xpos for name in GRIPS)
  assert moved.tolist() != fixed.tolist()


def test_fingers_of_a_closed_chain_are_two(tmp_path):
  """Beside each finger a rod turns along, which a point connects to it."""
  rod = """<body name="{side}_rod" pos="0 {y} 0.05"><joint name="{side}_rod" axis="1 0 0" range="-100 100"/>
    <geom size="0.004" pos="0 0 0.02" mass="0.01"/></body>"""
  hand = jaw("left", 0.005, -60, 0) + jaw("right", -0.005, 0, 60)
  hand += rod.format(side="left", y=0.02) + rod.format(side="right", y=-0.02)
  loops = "".join(
    f'<connect body1="{side}_finger" body2="{side}_rod" anchor="0 {y} 0.03"/>'
    for side, y in (("left", 0.02), ("right", -0.02))
  )
  after = f"<equality>{loops}</equality>" + couple("right", "left", -1)
  arm, spec = read_arm(
    asked(tmp_path, gripping(hand, motors='<motor joint="left"/>', after=after), grips=True)
  )
  assert [servo.joint for servo in arm.gripper.servos] == ["left"]
  assert len(spec.equalities) == 3
  assert arm.gripper.width > 0.02


FINGER = """<body pos="{x} 0 0.05"><joint name="{x}" axis="1 0 0" range="-30 30"/>
  <geom type="box" size="0.005 0.005 0.03" mass="0.02"/></body>"""


@pytest.mark.parametrize(
  ("text", "given", "message"),
  [
    (urdf(), {}, "no joint moves beyond 'elbow_link', so it has no gripper: .* let it reach: task=reach"),
    (
      gripping(SLIDES),
      {"cube_size": 0.07},
      "a cube of 7 cm does not fit .* opens to 6 cm: .*cube_size=0.036",
    ),
    (gripping("".join(FINGER.format(x=x) for x in (-0.03, 0, 0.03))), {}, "3 fingers of its hand"),
    (gripping(SLIDES.replace("<geom", '<geom contype="0" conaffinity="0"')), {}, "0 fingers of its hand"),
    (gripping(SLIDES.replace('range="0 0.03"', "")), {}, "'left' opens the gripper and has no limits"),
    (mjcf(hand=SLIDES).replace('range="-10 150"', 'range="-1 1"'), {}, "its hand does not point down"),
  ],
)
def test_what_cannot_grasp_is_said_in_one_line(text, given, message, tmp_path):
  with pytest.raises(ValueError, match=message) as caught:
    read_arm(asked(tmp_path, text, grips=True, **given))
  assert "\n" not in str(caught.value)
