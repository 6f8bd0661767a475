import dataclasses

import mujoco
import numpy as np
import pytest

from gpurobot.config import ConfigError
from gpurobot.deploy import trained
from gpurobot.viewer.stage import Robot, Stage, find_robot, task_of, view
from tests.gpurobot import hopping_box, toy

HELD = """
  <mujoco>
    <worldbody>
      <geom type="plane" size="1 1 1"/>
      <body pos="5 0 0"><freejoint/><geom size="0.1"/></body>
      <body><geom size="0.5"/><body pos="0 0 1"><joint name="elbow"/><geom size="0.1"/></body></body>
    </worldbody>
    <actuator>{}</actuator>
  </mujoco>"""
MOTOR = '<motor joint="elbow"/>'


@pytest.fixture
def stage(make_player):
  return Stage(make_player().task)


def test_a_stage_shows_the_state_of_each_environment(stage):
  sim = stage.task.sim
  sim.qpos[1, 7:10] = sim.qpos.new_tensor([2.0, 3.0, 4.0])
  sim.mocap_pos[1, 0] = sim.mocap_pos.new_tensor([7.0, 8.0, 9.0])
  stage.show(1)
  assert stage.data.body("box").xpos.tolist() == [2, 3, 4]
  assert stage.data.body("target").xpos.tolist() == [7, 8, 9]
  stage.show(0)
  assert stage.data.body("box").xpos.tolist() == [0, 0, 1]


def test_the_ground_gets_a_pattern_and_the_world_a_sky_and_the_motion_stays(stage):
  plain = stage.task.model.mj
  assert stage.model.geom("hills").matid[0] >= 0 > plain.geom("hills").matid[0]
  assert mujoco.mjtTexture.mjTEXTURE_SKYBOX in stage.model.tex_type
  for name in ("body_mass", "qpos0", "geom_size", "hfield_data", "geom_contype"):
    assert np.array_equal(getattr(stage.model, name), getattr(plain, name)), name


def test_the_shadows_of_light_from_far_away_follow_the_robot(stage):
  stage.task.sim.qpos[0, 7] = 6.0
  stage.show(0)
  assert stage.data.light_xpos[0].tolist() == [6, 0, 3]


def test_the_robot_is_what_the_actuators_move():
  model = mujoco.MjModel.from_xml_string(hopping_box.Task.robot)
  assert find_robot(model) == Robot(model.body("box").id, 6, free=True)
  assert find_robot(mujoco.MjModel.from_xml_string(HELD.format(MOTOR))) == Robot(2, 6, free=False)
  assert find_robot(mujoco.MjModel.from_xml_string(HELD.format(""))) == Robot(1, 0, free=True)


def test_the_camera_follows_a_free_robot_and_shows_all_that_is_held(stage):
  stage.show(0)
  assert view(stage).type == mujoco.mjtCamera.mjCAMERA_TRACKING
  assert view(stage).trackbodyid == stage.model.body("box").id
  stage.robot = dataclasses.replace(stage.robot, free=False)
  camera = view(stage)
  assert camera.type == mujoco.mjtCamera.mjCAMERA_FREE
  assert abs(camera.lookat[1] - 0.29) < 0.1  # between box and cube


def test_a_task_without_simulation_has_nothing_to_show():
  env = toy.Task(toy.Config(), 1, random=None)
  found = trained.Trained(trained.TrainConfig(task="toy"), env, None)
  with pytest.raises(ConfigError, match=r"task 'toy' has no robot"):
    task_of(found)
