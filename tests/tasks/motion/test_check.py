"""One-line messages about motions that a robot cannot do, with frame, joint and fix."""

import dataclasses
import math
import re

import numpy as np
import pytest

import physics
from tasks.core.errors import SettingError
from tasks.motion.check import check, clearance
from tasks.motion.rotation import exponential
from tasks.shared import robot_file
from tests.tasks.motion.robots import BIPED, HUMANOID, Config, own, robot_and_model


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
    check(clip, model, robot)
  assert "\n" not in str(error.value)
  return str(error.value)


def test_a_clip_of_our_own_passes():
  robot, model = robot_and_model()
  check(own("wave"), model, robot)
  assert abs(clearance(own("wave"), model)).max() < 0.002


def test_degrees_and_centimetres_are_told():
  assert "if these are degrees, convert them: gpurobot motion <file> degrees=true" in message(
    own("wave").scaled(1.0, 180 / math.pi)
  )
  assert "its root is at a height of 118.3 m, at home it is 1.3 m: if these are centimetres" in message(
    own("wave").scaled(100.0)
  )


def test_millimetres_and_another_axis_up_are_told():
  assert "if these are millimetres, convert them: gpurobot motion <file> scale=0.001" in message(
    own("wave").scaled(1000.0)
  )
  clip = own("wave")
  text = message(dataclasses.replace(clip, root_pos=clip.root_pos[:, [0, 2, 1]]))
  assert "under the ground, where z is up: move it by" in text


def test_a_root_that_turns_round_within_a_frame_jumps():
  clip = own("wave")
  turns = clip.root_quat.copy()
  turns[40:] = turns[40:, [3, 2, 1, 0]] * [-1, -1, 1, 1]  # half a turn about z
  assert "between frames 39 and 40 the root turns at 157 rad/s: cut the clip there" in message(
    dataclasses.replace(clip, root_quat=turns)
  )


def test_the_end_of_the_range_that_is_told_is_the_one_that_is_passed():
  robot, scene = robot_file.legged(Config(robot=str(HUMANOID)))
  scene = scene.copy()
  scene.joint("left_knee").range = [30.0, 160.0]  # degrees
  clip = own("wave")
  bent = clip.joint_pos.copy()
  bent[:, clip.joints.index("left_knee")] = 0.1
  robot_model = physics.load_model(scene)
  with pytest.raises(SettingError, match=r"'left_knee' is at 0\.1 and its range ends at 0\.524"):
    check(dataclasses.replace(clip, joint_pos=bent), robot_model, robot)


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


def test_a_robot_may_have_its_origin_on_the_ground():
  robot, model = robot_and_model()
  robot, clip = dataclasses.replace(robot, height=0.0), own("wave")
  assert check(clip, model, robot)
  with pytest.raises(SettingError, match="m under the ground: move it by"):
    check(clip.lifted(-0.2), model, robot)
  with pytest.raises(SettingError, match="at home it is 0 m: if these are centimetres"):
    check(clip.scaled(100.0), model, robot)


def test_a_clip_under_the_ground_or_in_the_air_tells_by_how_much_to_move_it():
  assert "m under the ground: move it by gpurobot motion <file> raise_by=0.2" in message(
    own("wave").lifted(-0.2)
  )
  text = message(own("wave").lifted(0.5))
  assert "m above the ground, and never lower: move it by gpurobot motion <file> raise_by=-0.5" in text


def doubts(clip, path=HUMANOID):
  robot, model = robot_and_model(path)
  return [found for found, doubtful in check(clip, model, robot).items() if doubtful]


@pytest.mark.parametrize("name", ["walk", "run", "jump"])
def test_a_clip_that_floats_is_doubted_by_the_length_of_a_leg(name):
  (found,) = doubts(own(name).lifted(0.06))
  assert re.fullmatch(
    r"three of four frames are 0\.0(59|6.) m above the ground or higher, 7% of a leg: move it by gpurobot "
    r"motion <file> raise_by=-0\.0\d* out=<new>\.npz",
    found,
  )
  assert doubts(own(name).lifted(0.03)) == []


@pytest.mark.parametrize(("begin", "end"), [(0.0, 0.3), (0.3, 0.0), (0.06, -0.06)])
def test_a_clip_that_rises_or_falls_is_doubted(begin, end):
  clip = own("jump")
  *_, found = doubts(clip.lifted(np.linspace(begin, end, len(clip))))
  assert found.startswith(
    f"it rises by {end - begin:.2f} m in 3.1 s: move it by gpurobot motion <file> level=true"
  )


@pytest.mark.parametrize("path", [HUMANOID, BIPED])
@pytest.mark.parametrize(("order", "places"), [("xyzw", -1), ("wxyz", 1)])
@pytest.mark.parametrize("name", ["walk", "run", "turn"])
def test_another_order_of_quaternions_is_recognised(name, order, places, path):
  clip = own(name, path).reordered(places)
  try:
    found = doubts(clip, path)[0]
  except SettingError as error:
    found = str(error)
  assert f"if its quaternions are {order}, reorder them: gpurobot motion <file> reorder={order}" in found


def test_who_stands_on_the_head_is_doubted():
  (found,) = doubts(own("squat", BIPED).reordered(1), BIPED)
  assert found.startswith("tilted by 177 degrees in the middle: if its quaternions are wxyz")


def test_who_walks_backwards_is_doubted():
  clip = own("walk")
  (found,) = doubts(dataclasses.replace(clip, root_pos=clip.root_pos * [-1, 1, 1]))
  assert found.startswith("as it faces, -2.62 m ahead and 0.00 m to the left, on a path of 2.80 m")


def test_who_crawls_is_not_doubted():
  """A humanoid on its face, 90 degrees down, that slides ahead."""
  clip = own("wave")
  down = np.tile(exponential(np.array([0.0, math.pi / 2, 0.0])), (len(clip), 1))
  ahead = np.linspace([0.0, 0.0, 1.0], [3.0, 0.0, 1.0], len(clip))
  clip = dataclasses.replace(clip, root_pos=ahead, root_quat=down)
  clip = clip.lifted(-clearance(clip, robot_and_model()[1]))
  assert doubts(clip) == []
