import math

import mujoco
import numpy as np
import pytest

import tasks
from gpurobot.viewer.framing import Robot, ahead, corners, find_robot, subject, view
from gpurobot.viewer.scenery import dressed
from tests.gpurobot import hopping_box

NAMES = [name for name in tasks.available() if not name.startswith("dm/")]  # those need an extra
HELD = """
  <mujoco>
    <worldbody>
      <geom type="plane" size="1 1 1"/>
      <geom name="rail" type="box" size="9 0.1 0.1"/>
      <body pos="5 0 0"><freejoint/><geom name="ball" size="0.1"/></body>
      <body name="target" mocap="true" pos="0 1 0"><geom name="target" size="0.1"/></body>
      <body>
        <geom name="base" size="0.5"/>
        <body pos="0 0 1">
          <joint name="elbow"/><geom name="hand" size="0.1"/><geom name="hull" size="2" group="3"/>
        </body>
      </body>
    </worldbody>
    <actuator>{}</actuator>
  </mujoco>"""
MOTOR = '<motor joint="elbow"/>'
SLIDING = """
  <mujoco>
    <worldbody>
      <body name="cart"><joint name="x" type="slide" axis="1 0 0" {}/><geom size="0.1"/></body>
    </worldbody>
    <actuator><motor joint="x"/></actuator>
  </mujoco>"""


def model_of(text):
  model = mujoco.MjModel.from_xml_string(text)
  data = mujoco.MjData(model)
  mujoco.mj_forward(model, data)
  return model, data


def seen(model, data, camera, aspect):
  """Return where the corners of the subject are in the picture: 1 is at its edge [n, 2]."""
  points = corners(model, data, subject(model, find_robot(model))) - camera.lookat
  forward = ahead(camera)
  right = np.cross(forward, (0, 0, 1))
  right /= np.linalg.norm(right)
  depth = points @ forward + camera.distance
  slope = math.tan(math.radians(model.vis.global_.fovy) / 2)
  up = points @ np.cross(right, forward)
  return np.stack([points @ right / aspect, up], 1) / (slope * depth[:, None])


def test_the_robot_is_what_the_actuators_move():
  model = mujoco.MjModel.from_xml_string(hopping_box.Task.robot)
  assert find_robot(model) == Robot(model.body("box").id, 6, free=True, roams=True)
  assert find_robot(model_of(HELD.format(MOTOR))[0]) == Robot(3, 6, free=False, roams=False)
  assert find_robot(model_of(HELD.format(""))[0]) == Robot(1, 0, free=True, roams=True)


def test_a_robot_on_slides_roams_unless_they_have_limits():
  assert find_robot(model_of(SLIDING.format(""))[0]) == Robot(1, 0, free=False, roams=True)
  assert not find_robot(model_of(SLIDING.format('range="-1 1"'))[0]).roams


def test_in_the_picture_is_what_moves_with_what_carries_it():
  model, _ = model_of(HELD.format(MOTOR))
  shown = subject(model, find_robot(model))
  assert [model.geom(index).name for index in np.flatnonzero(shown)] == ["ball", "target", "base", "hand"]
  model, _ = model_of(hopping_box.Task.robot)
  shown = subject(model, find_robot(model))
  assert set(model.geom_bodyid[shown]) == {model.body("box").id, model.body("box").id + 1}


def test_a_robot_of_hidden_geoms_alone_is_in_the_picture():
  model, _ = model_of(SLIDING.format("").replace('size="0.1"', 'size="0.1" group="3"'))
  assert subject(model, find_robot(model)).all()


def test_corners_turn_with_their_geoms():
  model, data = model_of(
    """
    <mujoco>
      <worldbody><body pos="1 2 3" euler="0 0 90"><geom type="box" size="1 2 3"/></body></worldbody>
    </mujoco>"""
  )
  found = corners(model, data, np.array([True]))
  assert np.allclose(found.min(0), [-1, 1, 0])
  assert np.allclose(found.max(0), [3, 3, 6])


@pytest.mark.parametrize("name", NAMES)
def test_every_task_s_subject_fills_the_picture_and_is_within_it(name):
  module = tasks.load(name)
  model = dressed(module.Task.scene(module.Config()))
  data = mujoco.MjData(model)
  if model.nkey:
    mujoco.mj_resetDataKeyframe(model, data, 0)
  mujoco.mj_forward(model, data)
  for aspect in (0.5, 3.0):
    camera = view(model, data, find_robot(model), aspect)
    edge = np.abs(seen(model, data, camera, aspect)).max()
    assert 0.4 < edge < 0.95, aspect


def test_the_camera_looks_down_on_hills():
  hills, plain = (model_of(text) for text in (hopping_box.Task.robot, HELD.format(MOTOR)))
  steep, flat = (view(*scene, find_robot(scene[0])).elevation for scene in (hills, plain))
  assert steep < flat - 10


def test_the_camera_follows_a_robot_that_roams_alone():
  for text, kind in (
    (hopping_box.Task.robot, mujoco.mjtCamera.mjCAMERA_TRACKING),
    (HELD.format(MOTOR), mujoco.mjtCamera.mjCAMERA_FREE),
  ):
    model, data = model_of(text)
    assert view(model, data, find_robot(model)).type == kind
