import mujoco
import numpy as np
import pytest

from gpurobot.deploy import trained
from gpurobot.settings.config import ConfigError
from gpurobot.viewer.task_scene import LIGHT_DISTANCE, TaskScene, task_of
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
