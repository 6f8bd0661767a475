"""One-line messages about motions that a robot cannot do, with frame, joint and fix."""

import dataclasses
import math

import pytest

from tasks.core.errors import SettingError
from tasks.motion.check import check, clearance
from tests.tasks.motion.robots import own, robot_and_model


def changed(**changes):
  """A clip with single numbers changed: root_pos or joint_pos, (frame, column) and value."""
  clip = own("wave")
  for name, (frame, column, value) in changes.items():
    values = getattr(clip, name).copy()
    values[frame, column] = value
    clip = dataclasses.replace(clip, **{name: values})
  return clip


def message(clip):
  robot, model = robot_and_model()
  with pytest.raises(SettingError) as error:
    check(clip, model, robot.height)
  assert "\n" not in str(error.value)
  return str(error.value)


def test_a_clip_of_our_own_passes():
  robot, model = robot_and_model()
  check(own("wave"), model, robot.height)
  assert abs(clearance(own("wave"), model)).max() < 0.002


def test_degrees_and_centimetres_are_told():
  assert "if these are degrees, convert them: gpurobot motion <file> degrees=true" in message(
    own("wave").scaled(1.0, 180 / math.pi)
  )
  assert "its root is at a height of 118.3 m, at home it is 1.3 m: if these are centimetres" in message(
    own("wave").scaled(100.0)
  )


def test_jumps_and_limits_name_frame_and_joint():
  knee = own("wave").joints.index("left_knee")
  assert "between frames 19 and 20 the root moves at" in message(changed(root_pos=(20, 0, 3.0)))
  assert "between frames 29 and 30 'left_knee' turns at" in message(changed(joint_pos=(30, knee, 2.6)))
  clip = own("wave")
  bent = clip.joint_pos.copy()
  bent[:, knee] = -0.5
  assert "frame 0: 'left_knee' is at -0.5 and its range ends at -0.0349: correct the order" in message(
    dataclasses.replace(clip, joint_pos=bent)
  )


def test_a_clip_under_the_ground_or_in_the_air_tells_by_how_much_to_move_it():
  assert "m under the ground: move it by gpurobot motion <file> raise_by=0.2" in message(
    own("wave").lifted(-0.2)
  )
  text = message(own("wave").lifted(0.5))
  assert "m above the ground, and never lower: move it by gpurobot motion <file> raise_by=-0.5" in text
