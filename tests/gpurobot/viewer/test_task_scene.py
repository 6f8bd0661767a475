import math

import mujoco
import numpy as np
import pytest
import torch

import tasks
from gpurobot.deploy import trained
from gpurobot.learn.random import Random
from gpurobot.settings.config import ConfigError
from gpurobot.viewer.task_scene import LENGTH, LIGHT_DISTANCE, TaskScene, task_of
from physics.engines import MujocoSimulation
from tests.gpurobot import toy


@pytest.fixture
def rendered(make_player):
  return TaskScene(make_player().task)


def test_a_stage_shows_the_state_of_each_environment(rendered):
  sim = rendered.task.sim
  sim.qpos[1, 7:10] = sim.qpos.new_tensor([2.0, 3.0, 4.0])
  sim.mocap_pos[1, 0] = sim.mocap_pos.new_tensor([7.0, 8.0, 9.0])
  rendered.show(1)
  assert rendered.data.body("box").xpos.tolist() == [2, 3, 4]
  assert rendered.data.body("target").xpos.tolist() == [7, 8, 9]
  rendered.show(0)
  assert rendered.data.body("box").xpos.tolist() == [0, 0, 1]


def stepped_by_mujoco(name):
  """Return two environments of a task, without a kernel."""
  module = tasks.load(name)
  config = module.Config()
  simulation = MujocoSimulation(module.Task.make_model(config), 2, module.Task.outputs)
  task = module.Task(config, 2, random=Random(0, 2), training=False, simulation=simulation)
  task.reset()
  return task


def poses(scene, name):
  """Return positions and axes of the geoms of a body."""
  geoms = scene.model.geom_bodyid == scene.model.body(name).id
  return scene.data.geom_xpos[geoms], scene.data.geom_xmat[geoms]


def test_the_hand_at_its_goal_is_where_the_goal_is_drawn():
  task = stepped_by_mujoco("arm_reach")
  task.goal_position.copy_(task.sim.site_xpos[:, task.point])
  task.goal_rotation.copy_(task.sim.xquat[:, task.hand])
  scene = TaskScene(task)
  scene.show(1)
  for drawn, real in zip(poses(scene, "gpurobot_goal_0"), poses(scene, "hand"), strict=True):
    np.testing.assert_allclose(drawn[:1], real, atol=1e-5)
  assert len(poses(scene, "gpurobot_goal_0")[0]) == 3  # with its fingers
  assert TaskScene(task, marked=False).model.nmocap == 0


def test_the_goal_of_a_cube_is_a_cube_above():
  task = stepped_by_mujoco("hand_cube")
  task.target[1] = torch.tensor([0.6, 0.8, 0.0, 0.0])
  scene = TaskScene(task)
  scene.show(1)
  assert scene.data.body("gpurobot_goal_0").xquat == pytest.approx([0.6, 0.8, 0, 0])
  assert scene.data.body("gpurobot_goal_0").xpos[2] > 0.6
  task = stepped_by_mujoco("cube_stack")
  scene = TaskScene(task)
  scene.show(0)
  goal, below = (scene.data.body(name).xpos for name in ("gpurobot_goal_0", "cube_b"))
  assert goal - below == pytest.approx([0, 0, 0.06], abs=1e-6)


def test_a_commanded_position_is_a_goal_unless_the_scene_shows_it():
  task = stepped_by_mujoco("quadcopter")
  scene = TaskScene(task)
  scene.show(1)
  assert scene.data.body("gpurobot_goal_0").xpos == pytest.approx(task.target[1].tolist())
  assert TaskScene(stepped_by_mujoco("arm_reach_rgb")).model.nmocap == 1


def test_arrows_show_the_commanded_and_the_actual_velocity(rendered):
  sim, half = rendered.task.sim, math.sqrt(0.5)
  sim.qpos[1, 10:14] = sim.qpos.new_tensor([half, 0, 0, half])  # turned to the left
  sim.qvel[1, 6:8] = sim.qvel.new_tensor([0.5, -1.0])
  rendered.task.command[1, :2] = torch.tensor([1.0, 2.0])
  rendered.show(1)
  commanded, actual = (end - start for start, end in rendered.arrows)
  assert commanded == pytest.approx([-2 * LENGTH, LENGTH, 0], abs=1e-6)
  assert actual == pytest.approx([0.5 * LENGTH, -LENGTH, 0])
  assert rendered.arrows[1][0][2] > rendered.data.body("box").xpos[2] + 0.2  # above it
  plain = TaskScene(rendered.task, marked=False)
  plain.show(1)
  assert not plain.arrows


def test_the_ground_gets_a_pattern_and_the_world_a_sky_and_the_motion_stays(rendered):
  plain = rendered.task.model.mj
  assert rendered.model.geom("hills").matid[0] >= 0 > plain.geom("hills").matid[0]
  assert mujoco.mjtTexture.mjTEXTURE_SKYBOX in rendered.model.tex_type
  for name in ("body_mass", "qpos0", "geom_size", "hfield_data", "geom_contype"):
    assert np.array_equal(getattr(rendered.model, name), getattr(plain, name)), name


def test_the_shadows_of_light_from_far_away_follow_the_robot(rendered):
  rendered.task.sim.qpos[0, 7] = 6.0
  rendered.show(0)
  place = rendered.data.light_xpos[0] + LIGHT_DISTANCE * rendered.data.light_xdir[0]
  assert place == pytest.approx([6, 0, 1])
  assert 0 < rendered.model.vis.map.shadowclip < 1  # sharp, where the robot is


def test_a_task_without_simulation_has_nothing_to_show():
  env = toy.Task(toy.Config(), 1, random=None)
  found = trained.Trained(trained.TrainConfig(task="toy"), env, None)
  with pytest.raises(ConfigError, match=r"task 'toy' has no robot"):
    task_of(found)
