"""Cube lift depth by hand: where the cube is in the image, and a teacher that lifts it."""

import pytest
import torch

import tasks
from gpurobot.deploy import demos
from gpurobot.run import teachers
from gpurobot.settings.config import assign, defaults
from tests.tasks.project import project


def test_the_camera_of_the_wrist_sees_the_cube(make_task):
  task = make_task("cube_lift_depth", num_envs=4, camera_size=64)
  obs = task.reset()
  assert obs["depth"].shape == (4, 64, 64, 1)
  for env in range(4):
    top = task.sim.xpos[env, task.cube].cpu() + torch.tensor([0.0, 0.0, 0.025])
    row, column, depth = project(task, env, "wrist", top, 64)
    assert obs["depth"][env, int(row), int(column), 0].item() == pytest.approx(depth, abs=0.004)
    away = obs["depth"][env, (int(row) + 32) % 64, int(column), 0].item()
    assert abs(away - depth) > 0.01  # the table, or the hand


def test_a_teacher_of_cube_lift_lifts_here(make_task, device):
  task = make_task("cube_lift_depth", num_envs=32)
  module = tasks.load("cube_lift_depth")
  words = {"algorithm": "distill", "teacher": str(demos.find("cube_lift")), "task": "cube_lift_depth"}
  (teacher,) = teachers.load(assign(defaults(module), words), module, 32, device)
  obs, restart = task.reset(), torch.ones(32, dtype=torch.bool)
  for _ in range(task.max_episode_steps):
    step = task.step(teacher(obs["teacher"], restart).chunk(2, -1)[0])
    obs, restart = step["obs"], step["terminated"] | step["truncated"]
  assert step["success"].float().mean() > 0.85
