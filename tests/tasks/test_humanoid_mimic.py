"""Humanoid mimic is motion_track with one walk."""

import pytest
import torch

from tasks import humanoid_mimic, motion_track
from tasks.core.errors import SettingError
from tests.tasks import in_mujoco
from tests.tasks.motion.robots import DOG

STILL = {"start_place": 0.0, "start_turn": 0.0, "start_velocity": 0.0, "start_angle": 0.0}


@pytest.fixture(scope="module")
def task():
  return in_mujoco.build(humanoid_mimic, 8, **STILL)


def test_the_walk_lasts_as_long_as_an_episode(task):
  assert task.library.names == ("steady_walk",)
  assert task.library.counts == [603]
  assert task.max_episode_steps == 600


def test_episodes_start_in_the_walk_at_its_speed(task):
  task.reset()
  assert (task.squares[:, motion_track.ERRORS.index("body_place")].sqrt() < 0.02).all()
  torch.testing.assert_close(task.sim.qvel[:, 0].float(), torch.full((8,), 0.8), rtol=0, atol=1e-3)
  angles, _ = task.reference_joints(task.row())
  torch.testing.assert_close(task.sim.qpos[:, task.angles].to(angles), angles, rtol=0, atol=1e-5)


def test_a_robot_that_the_walk_is_not_made_for_is_told_what_to_write():
  with pytest.raises(SettingError, match="steady_walk is of the humanoid of assets/ alone: write walk"):
    in_mujoco.build(humanoid_mimic, robot=str(DOG))
