"""The curriculum by hand-made episodes, the scan against mj_ray, starts on the ground, headings."""

import math

import mujoco
import numpy as np
import pytest
import torch

from gpurobot.deploy.trained import hold_levels
from gpurobot.learn.random import Random
from tasks.quadruped_rough import Config, Task
from tasks.shared.rough import RAY_START
from tests.tasks.conftest import SMALL

STANDING = torch.zeros(32, 12)


def make(num_envs, *, training, **settings):
  config = Config(**SMALL["quadruped_rough"] | settings)
  return Task(config, num_envs, random=Random(0, num_envs), training=training)


@pytest.fixture(scope="module")
def made():
  """Return robots in training, to be used by one test after the other, and others out of it."""
  return make(32, training=True), make(64, training=False)


@pytest.fixture
def task(made):
  """Return robots in training, at the start of their episodes."""
  made[0].reset()
  return made[0]


@pytest.fixture
def finished(made):
  """Return robots out of training, on ground of all levels."""
  made[1].reset()
  return made[1]


def walk_to(task, x, y, asked, level=1):
  """Put every robot at a place from its tile's middle, after commands of so many metres; end its episode."""
  task.level.fill_(level)
  task.sim.qpos[:, 0] = task.origin[:, 0] + x
  task.sim.qpos[:, 1] = task.origin[:, 1] + y
  task.asked.fill_(asked)
  return task.initial_state()["level"]


@pytest.mark.parametrize(
  ("x", "y", "asked", "change"),
  [
    (2.1, 0.0, 3.0, 1),  # across the edge
    (0.5, -2.1, 9.0, 1),  # across another, by a long way round
    (1.2, 1.2, 3.0, 0),  # more than half of what was asked
    (0.6, 0.8, 2.1, -1),  # less than half: 1 m of 2.1 m
    (0.6, 0.8, 1.9, 0),
    (0.0, 0.0, 0.0, 0),  # told to stand
  ],
)
def test_the_level_follows_how_far_a_robot_got(task, x, y, asked, change):
  assert walk_to(task, x, y, asked).eq(1 + change).all()


def test_levels_end_at_the_first_and_begin_anew_anywhere_after_the_last(task):
  assert walk_to(task, 0.0, 0.0, 2.0, level=0).eq(0).all()
  after = walk_to(task, 2.1, 0.0, 2.0, level=2)
  assert after.unique().tolist() == [0, 1, 2]


def test_outside_of_training_every_level_is_met(finished):
  finished.level.fill_(0)
  assert finished.initial_state()["level"].unique().tolist() == [0, 1, 2]


def test_evaluation_holds_the_levels_and_kinds_of_a_training(task, made):
  task.level.copy_(torch.arange(32) % 3)
  finished = make(64, training=False)
  hold_levels(finished, [task.state_dict()])
  finished.reset()
  assert finished.level.tolist() == task.level.repeat_interleave(2).tolist()
  assert finished.kind.tolist() == task.kind.repeat_interleave(2).tolist()
  assert torch.equal(finished.origin, finished.terrain.origins[finished.level, finished.kind])
  made[1].reset()
  assert made[1].level.unique().tolist() == [0, 1, 2]


def test_the_settings_choose_a_level():
  task = make(8, training=False, level=2)
  task.reset()
  assert task.level.tolist() == [2] * 8
  with pytest.raises(ValueError, match=r"env.level=3 is none of env.terrain_levels=3: they start at 0$"):
    make(8, training=False, level=3)


def test_a_chosen_level_counts_in_the_evaluation_of_a_training_too(task):
  """It was logged as the level that the training had reached."""
  task.level.fill_(2)
  chosen = make(32, training=False, level=0)
  hold_levels(chosen, [task.state_dict()])
  chosen.reset()
  assert torch.equal(chosen.origin, chosen.terrain.origins[0, chosen.kind])
  assert chosen.metrics()["terrain_level"].tolist() == [0] * 32


def test_leaving_the_tile_ends_the_episode_as_a_success_and_starts_the_next_level(task):
  task.level.zero_()
  task.episode_steps.fill_(10)
  task.sim.qpos[:4, 0] = task.origin[:4, 0] + 2.05
  task.sim.qpos[:4, 2] += 1.0  # above whatever there is
  step = task.step(STANDING)
  assert step["truncated"].tolist() == [True] * 4 + [False] * 28
  assert step["success"].equal(step["truncated"])
  assert not step["terminated"].any()
  assert task.level.tolist() == [1] * 4 + [0] * 28
  assert task.asked[:4].eq(0).all()


def test_robots_start_on_the_ground_of_their_own_tile(finished):
  place = finished.sim.qpos[:, :3]
  tile = finished.terrain.origins[finished.level, finished.kind]
  assert finished.origin.equal(tile)
  assert ((place[:, :2] - tile[:, :2]).abs() <= finished.config.start_offset).all()
  above = place[:, 2] - finished.terrain.height(place[:, :2])
  torch.testing.assert_close(above, finished.home[2].expand(64))
  assert finished.kind.unique().numel() == len(finished.config.terrain_kinds)
  assert tile[:, 2].max() - tile[:, 2].min() > 0.5


def test_the_scan_is_what_rays_meet(finished):
  finished.sim.qpos[:, :2] += 1.2 * finished.random.uniform("shift", (2,), -1.0, 1.0)
  scan, yaw = finished.observe()["critic"]["scan"], finished.yaw()
  mj, data = finished.model.mj, mujoco.MjData(finished.model.mj)
  mujoco.mj_kinematics(mj, data)
  floor, down = finished.model.geom_id("floor"), np.array([0.0, 0.0, -1.0])
  for env in range(64):
    x, y, z = finished.sim.qpos[env, :3].tolist()
    cos, sin = math.cos(yaw[env]), math.sin(yaw[env])
    for point, (i, j) in enumerate(np.ndindex(11, 7)):
      ahead, left = 0.1 * (i - 5), 0.1 * (j - 3)
      start = np.array([x + cos * ahead - sin * left, y + sin * ahead + cos * left, z + RAY_START])
      depth = mujoco.mj_rayHfield(mj, data, floor, start, down) - RAY_START
      expected = min(max(depth - finished.home[2].item(), -1.0), 1.0)
      assert scan[env, point].item() == pytest.approx(expected, abs=1e-4)
  assert scan.std() > 0.05


def test_the_policy_sees_the_ground_with_noise_and_the_critic_without(task):
  seen = task.observations.push(task.observe())
  scan = task.observe()["policy"]["scan"]
  error = seen["policy"][:, -77:] - scan
  assert 0.5 * task.config.noise_scan < error.abs().max() <= task.config.noise_scan
  assert seen["critic"][:, -77:].equal(scan)


def test_the_command_turns_towards_the_heading(task):
  forward = torch.tensor([[1.0, 0.0, 0.3]]).repeat(5, 1)
  forward[4, 0] = 0.0
  forward[4, 2] = 0.0
  off = torch.tensor([0.5, -0.25, math.pi - 0.1, math.pi + 0.1, 0.5])
  turned = task.turned(forward, off)
  torch.testing.assert_close(turned[:, 2], torch.tensor([0.5, -0.25, 1.0, -1.0, 0.0]))
  assert turned[:, :2].equal(forward[:, :2])


def test_the_heading_is_the_robots_own(task):
  yaw = torch.linspace(-3.0, 3.0, 32)
  task.sim.qpos[:, 3:7] = torch.stack([(yaw / 2).cos(), 0 * yaw, 0 * yaw, (yaw / 2).sin()], 1)
  torch.testing.assert_close(task.yaw(), yaw)


def test_the_distance_asked_is_the_sum_of_the_commanded(task):
  task.asked.zero_()
  task.command[:, :2] = torch.tensor([0.6, -0.8])
  task.step(STANDING)
  task.step(STANDING)
  going = task.episode_steps > 2
  torch.testing.assert_close(task.asked[going], torch.full((int(going.sum()),), 2 * 0.02))
  assert going.any()


def test_a_blind_robot_has_a_teacher_that_sees_what_others_see(task):
  blind = make(32, training=True, blind=True)
  assert blind.obs_names["teacher"] == task.obs_names["policy"]
  assert blind.obs_names["critic"] == task.obs_names["critic"]
  assert blind.obs_names["policy"] == [name for name in task.obs_names["policy"] if name != "scan"]
  assert blind.obs_dims == {"policy": 47, "critic": 138}
  assert {name: len(sign) for name, (_, sign) in blind.mirror.items()} == {"policy": 47, "action": 12}
  obs = blind.reset()
  scan = obs["critic"][:, [name == "scan" for name in blind.obs_names["critic"]]]
  assert torch.equal(obs["teacher"][:, 47:], scan)
  assert 0 < float((obs["teacher"][:, :47] - obs["policy"]).abs().max()) <= 1.5  # the policy's noise


def test_robots_of_a_checkpoint_with_more_kinds_of_terrain_start_on_what_there_is():
  other = make(2, training=False, terrain_kinds=["rubble"])
  other.kind.copy_(torch.tensor([0, 5]))
  other.reset()
  assert other.origin.equal(other.terrain.origins[other.level, 0])


def test_as_many_teachers_as_kinds_of_terrain_have_a_kind_each(task):
  assert torch.equal(task.teacher_index(7), task.kind)
  assert task.teacher_index(2) is None
