"""One-line messages about motions that a robot cannot do, with frame, joint and fix."""

import dataclasses
import math
import re

import numpy as np
import pytest

import physics
from tasks.core.errors import SettingError
from tasks.motion.check import check, clearance, sunk
from tasks.motion.rotation import exponential
from tasks.shared import robot_file
from tests.tasks.motion.robots import BIPED, HUMANOID, Config, own, robot_and_model


def wave():
  return own("wave")


def changed(name, where, value):
  """A clip with other numbers: a field, where in it (joints by name), and what is written there."""
  values = getattr(wave(), name).copy()
  values[tuple(wave().joints.index(part) if isinstance(part, str) else part for part in where)] = value
  return dataclasses.replace(wave(), **{name: values})


def test_a_clip_of_our_own_passes():
  robot, model = robot_and_model()
  check(own("wave"), model, robot)
  assert abs(clearance(own("wave"), model)).max() < 0.002


KNEE = (..., "left_knee")
MISTAKES = {  # what is told, and the clip
  "if these are degrees, convert them: gpurobot motion <file> degrees=true": lambda: wave().scaled(
    1.0, 180 / math.pi
  ),
  "its root is at a height of 118.3 m, at home it is 1.3 m: if these are centi": lambda: wave().scaled(100.0),
  "if these are millimetres, convert them: gpurobot motion <file> scale=0.001": lambda: wave().scaled(1000.0),
  "under the ground, where z is up: move it by": lambda: changed(
    "root_pos", (...,), wave().root_pos[:, [0, 2, 1]]
  ),
  "between frames 39 and 40 the root turns at 157 rad/s: cut the clip there": lambda: changed(
    "root_quat", (slice(40, None),), wave().root_quat[40:, [3, 2, 1, 0]] * [-1, -1, 1, 1]
  ),  # half a turn about z
  "between frames 19 and 20 the root moves at": lambda: changed("root_pos", (20, 0), 3.0),
  "between frames 29 and 30 'left_knee' turns at": lambda: changed("joint_pos", (30, "left_knee"), 2.6),
  "frame 0: 'left_knee' is at -0.5 and its range ends at -0.0349: correct the": lambda: changed(
    "joint_pos", KNEE, -0.5
  ),
  "m under the ground: move it by gpurobot motion <file> raise_by=0.2": lambda: wave().lifted(-0.2),
  "0.3 m under the ground: raise such frames by gpurobot motion <file> raise_sunk=true": lambda: changed(
    "root_pos", (slice(60, 70), 2), wave().root_pos[60:70, 2] - 0.3
  ),
  "m above the ground, and never lower: move it by gpurobot motion <file> rais": lambda: wave().lifted(0.5),
}


@pytest.mark.parametrize(("message", "clip"), MISTAKES.items(), ids=range(len(MISTAKES)))
def test_what_a_robot_cannot_do_is_told_in_one_line(message, clip):
  robot, model = robot_and_model()
  with pytest.raises(SettingError) as error:
    check(clip(), model, robot)
  assert message in str(error.value)
  assert "\n" not in str(error.value)


def test_sunk_frames_rise_to_the_ground_and_those_far_from_them_stay():
  lowest = np.full(100, 0.02)
  lowest[50:53] = -0.1
  height = sunk(lowest, 50.0)
  assert (lowest + height >= 0).all()
  np.testing.assert_allclose(height[51], 0.1)
  assert not height[:40].any()
  assert not height[63:].any()
  assert np.abs(np.diff(height)).max() < 0.1 / 10


def test_the_end_of_the_range_that_is_told_is_the_one_that_is_passed():
  robot, scene = robot_file.legged(Config(robot=str(HUMANOID)))
  scene = scene.copy()
  scene.joint("left_knee").range = [30.0, 160.0]  # degrees
  with pytest.raises(SettingError, match=r"'left_knee' is at 0\.1 and its range ends at 0\.524"):
    check(changed("joint_pos", KNEE, 0.1), physics.load_model(scene), robot)


def test_a_robot_may_have_its_origin_on_the_ground():
  robot, model = robot_and_model()
  robot, clip = dataclasses.replace(robot, height=0.0), own("wave")
  assert check(clip, model, robot)
  with pytest.raises(SettingError, match="m under the ground: move it by"):
    check(clip.lifted(-0.2), model, robot)
  with pytest.raises(SettingError, match="at home it is 0 m: if these are centimetres"):
    check(clip.scaled(100.0), model, robot)


def doubts(clip, path=HUMANOID):
  robot, model = robot_and_model(path)
  return [found for found, doubtful in check(clip, model, robot).items() if doubtful]


@pytest.mark.parametrize("name", ["walk", "jump"])
def test_a_clip_that_floats_is_doubted_by_the_length_of_a_leg(name):
  (found,) = doubts(own(name).lifted(0.06))
  assert re.fullmatch(
    r"three of four frames are 0\.0(59|6.) m above the ground or higher, 7% of a leg: move it by gpurobot "
    r"motion <file> raise_by=-0\.0\d* out=<new>\.npz",
    found,
  )
  assert doubts(own(name).lifted(0.03)) == []


@pytest.mark.parametrize(("begin", "end"), [(0.0, 0.3), (0.06, -0.06)])
def test_a_clip_that_rises_or_falls_is_doubted(begin, end):
  clip = own("jump")
  *_, found = doubts(clip.lifted(np.linspace(begin, end, len(clip))))
  assert found.startswith(f"it rises by {end - begin:.2f} m in 3.1 s: move it by gpurobot motion <file> lev")


@pytest.mark.parametrize(("name", "order", "places", "path"), [
  ("walk", "xyzw", -1, HUMANOID), ("walk", "wxyz", 1, BIPED), ("run", "wxyz", 1, HUMANOID),
  ("turn", "xyzw", -1, BIPED),
])  # fmt: skip
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
