"""BVH files: the joints of a skeleton, and the humanoid that follows them."""

import functools
import re

import numpy as np
import pytest

from tasks.core.errors import SettingError
from tasks.motion import settings
from tasks.motion.check import check
from tests.tasks.motion.robots import BIPED, Config, robot_and_model

LIMBS = (
  ("UpLeg", "0 0 0", "Leg", "0 -40 0", "Foot", "0 -40 0"),
  ("Arm", "0 0 0", "ForeArm", "0 -30 0", "Hand", "0 -30 0"),
)


def chain(side, x, y, names):
  """Three joints below each other, each with rotations about z, x and y."""
  upper, _, middle, middle_offset, lower, lower_offset = names
  channels = "CHANNELS 3 Zrotation Xrotation Yrotation"
  return f"""JOINT {side}{upper} {{ OFFSET {x} {y} 0 {channels}
    JOINT {side}{middle} {{ OFFSET {middle_offset} {channels}
      JOINT {side}{lower} {{ OFFSET {lower_offset} {channels} End Site {{ OFFSET 0 0 10 }} }} }} }}"""


def bvh(frames):
  """A person of 80 cm legs; `frames` are 6 numbers of the hips and 3 of each of the 12 joints."""
  limbs = [chain(side, sign * 10, 0, LIMBS[0]) for side, sign in (("Left", 1), ("Right", -1))]
  limbs += [chain(side, sign * 20, 50, LIMBS[1]) for side, sign in (("Left", 1), ("Right", -1))]
  lines = "\n".join(" ".join(map(str, row)) for row in frames)
  return f"""HIERARCHY
ROOT Hips {{ OFFSET 0 0 0 CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  {" ".join(limbs)} }}
MOTION
Frames: {len(frames)}
Frame Time: 0.05
{lines}
"""


def rows(count=4, **angles):
  """Standing, with angles about x in degrees by joint; the legs first, left before right."""
  limbs = [f"{side}_{part}" for part in ("leg", "arm") for side in ("left", "right")]
  frame = [0.0, 85.0, 0.0, 0.0, 0.0, 0.0]
  for joint in (f"{limb}_{i}" for limb in limbs for i in range(3)):
    frame += [0.0, angles.get(joint, 0.0), 0.0]
  return [list(frame) for _ in range(count)]


def read(text, folder):
  (folder / "person.bvh").write_text(text)
  return settings.read(Config(motion=str(folder / "person.bvh")), *robot_and_model(), 0.02)[0]


def test_a_bent_knee_bends_that_of_the_humanoid(tmp_path):
  # A thigh 40 degrees forward and a shank back: about x, which is to the person's left, forward is negative.
  clip = read(bvh(rows(left_leg_0=-40.0, left_leg_1=70.0)), tmp_path)
  angles = dict(zip(clip.joints, np.degrees(clip.joint_pos[-1]).tolist(), strict=True))
  assert clip.fps == 20.0
  assert angles["left_hip_y"] == pytest.approx(-40.0, abs=4.0)
  assert angles["left_knee"] == pytest.approx(70.0, abs=5.0)
  assert abs(angles["right_knee"]) < 10.0
  assert clip.root_pos[-1, 2] == pytest.approx(1.285, abs=0.03)
  check(clip, *robot_and_model()[::-1])


def test_a_person_who_walks_to_the_left_while_turning_left_goes_there(tmp_path):
  frames = rows(3)
  for i, frame in enumerate(frames):
    frame[0], frame[5] = 20.0 * i, 30.0 * i  # x is to the left of who looks along z; y is up
  clip = read(bvh(frames), tmp_path)
  scale = 0.713 / 0.8 / 100
  np.testing.assert_allclose(clip.root_pos[:, 1], 20 * scale * np.arange(3), atol=0.02)
  yaw = 2 * np.degrees(np.arctan2(clip.root_quat[:, 3], clip.root_quat[:, 0]))
  np.testing.assert_allclose(yaw, [0, 30, 60], atol=2.0)


def test_an_arm_that_is_raised_forward_points_there(tmp_path):
  clip = read(bvh(rows(right_arm_0=-80.0)), tmp_path)
  angles = dict(zip(clip.joints, np.degrees(clip.joint_pos[-1]).tolist(), strict=True))
  assert angles["right_shoulder_y"] < -60.0
  assert abs(angles["left_shoulder_y"]) < 25.0


def test_a_side_may_follow_the_name_of_a_part(tmp_path):
  text = re.sub("(Left|Right)(UpLeg|Leg|Foot|Arm|ForeArm|Hand)", r"\2_\1", bvh(rows(left_leg_1=50.0)))
  names = {"UpLeg": "UpperLeg", " Leg": " LowerLeg", " Arm": " UpperArm", "_Left": "_L", "_Right": "_R"}
  renamed = functools.reduce(lambda text, pair: text.replace(*pair), names.items(), text)
  assert "UpperLeg_L" in renamed
  np.testing.assert_array_equal(read(renamed, tmp_path).joint_pos, read(text, tmp_path).joint_pos)


def test_another_rate_than_the_files_is_told(tmp_path):
  (tmp_path / "person.bvh").write_text(bvh(rows()))
  config = Config(motion=str(tmp_path / "person.bvh"), motion_fps=60.0)
  with pytest.raises(SettingError, match=r"frames per second are 20\.0: leave env\.motion_fps=60\.0 out"):
    settings.read(config, *robot_and_model(), 0.02)


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("HIERARCHY", "is no BVH file: its parts are HIERARCHY and MOTION"),
    (bvh(rows(1)), "it has 1 frames of 0.05 s: a motion has two or more"),
    (bvh(rows()).replace("0.05", "1e9"), "1e-09 frames per second: write a number from 0.1 to 10,000"),
    (bvh(rows())[:-20], "cannot be read as BVH"),
    (bvh(rows()).replace("Yrotation", "Wrotation"), "cannot be read as BVH: 'Wrotation' is no channel"),
    (bvh(rows()).replace("85.0", "nan"), "frame 0: column 1 is nan: write numbers up to 1e+06"),
    (bvh(rows()).replace("0.05", "nan"), "it has 4 frames of nan s"),
    (bvh(rows()).replace("0 -40 0", "0 0 0"), "the length of a leg is 0"),
    (bvh(rows()).replace("LeftUpLeg", "Thing"), "no joint is the left thigh, as 'leftupleg': it has Hips"),
  ],
)
def test_mistakes_of_a_file_are_told(text, message, tmp_path):
  with pytest.raises(SettingError) as error:
    read(text, tmp_path)
  assert message in str(error.value)
  assert "\n" not in str(error.value)


def test_other_robots_are_told_that_it_is_for_the_humanoid(tmp_path):
  (tmp_path / "person.bvh").write_text(bvh(rows()))
  config = Config(motion=str(tmp_path / "person.bvh"), robot=str(BIPED))
  with pytest.raises(SettingError, match=r"are for our humanoid, .*biped.* has no body 'left_thigh'"):
    settings.read(config, *robot_and_model(BIPED), 0.02)
