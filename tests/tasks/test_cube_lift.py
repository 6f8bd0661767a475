"""Cube lift by hand: starts, rewards, and a script that solves it."""

import math

import pytest
import torch


@pytest.fixture
def task(make_task):
  task = make_task("cube_lift", num_envs=2)
  task.reset()
  return task


def test_cubes_lie_on_the_table_below_their_goals(make_task):
  task = make_task("cube_lift", num_envs=256)
  task.reset()
  away = task.sim.qpos[:, task.cube_qpos] - task.home[task.cube_qpos]
  assert (away[:, 0].abs().max() - 0.1).abs() < 0.01
  assert (away[:, 1].abs().max() - 0.15).abs() < 0.01
  assert away[:, 2].abs().max() < 1e-6
  turn = 2.0 * torch.atan2(task.sim.qpos[:, task.cube_qpos][:, 6], task.sim.qpos[:, task.cube_qpos][:, 3])
  assert 0.7 < turn.abs().max() <= math.pi / 4
  goals = task.goal_position - task.home[task.cube_qpos][:3]
  torch.testing.assert_close(goals.amin(0), torch.tensor([-0.1, -0.15, 0.1]), atol=0.01, rtol=0.0)
  torch.testing.assert_close(goals.amax(0), torch.tensor([0.1, 0.15, 0.25]), atol=0.01, rtol=0.0)
  for _ in range(5):
    task.step(torch.zeros(256, task.num_actions))
  assert (task.sim.xpos[:, task.cube, 2] - task.rest).abs().max() < 1e-3


def test_an_episode_is_that_of_an_arm(task):
  assert (task.config.episode_steps, task.config.substeps) == (100, 8)


def test_reward_by_hand(task):
  task.sim.site_xpos[:, task.point] = torch.tensor([0.5, 0.0, 0.12])
  task.sim.xmat[:, task.hand] = torch.tensor([1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, -1.0])
  task.sim.qpos[:, task.fingers] = 0.03
  task.sim.xpos[:, task.cube] = torch.tensor([[0.5, 0.0, 0.08], [0.5, 0.0, 0.16]])
  task.goal_position.copy_(torch.tensor([[0.5, 0.1, 0.135], [0.5, 0.02, 0.17]]))
  task.action.fill_(0.5)
  task.update()
  weighted = {name: task.reward_weights[name] * term for name, term in task.reward().items()}
  reach = 1.0 - math.tanh((0.04 + 2 * 0.05) / 3 / 0.1)  # the fingertips are 0.03 m from the grasp point
  assert weighted["reach"].tolist() == pytest.approx([reach, reach], rel=1e-4)
  goal = [10.0 * 0.5 * (1.0 - math.tanh(0.5)), 10.0 * (1.0 - 0.01 / 0.145) * (1.0 - math.tanh(0.1))]
  assert weighted["goal"].tolist() == pytest.approx(goal, rel=1e-4)
  assert task.success().tolist() == [False, True]
  assert weighted["action"].tolist() == pytest.approx([-0.01 * 7 * 0.25] * 2)
  task.sim.xmat[0, task.hand] = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0])  # level
  task.sim.xpos[1, task.cube, 2] = task.rest
  assert task.reward()["goal"].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


def test_a_cube_that_falls_ends_the_episode(task):
  task.sim.qpos[0, task.cube_qpos] = torch.tensor([0.45, 0.9, 0.0, 1.0, 0.0, 0.0, 0.0])
  fell = torch.zeros(2, dtype=torch.bool)
  for _ in range(6):
    fell |= task.step(torch.zeros(2, task.num_actions))["terminated"]
  assert fell.tolist() == [True, False]
