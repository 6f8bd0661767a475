"""Ball balance's numbers by hand, its closed chains, and a controller that shows what can be reached."""

import math

import pytest
import torch

THIGH = 0.36  # and shank [m]


@pytest.fixture
def task(make_task):
  task = make_task("ball_balance", num_envs=2)
  task.reset()
  return task


def place(task, position, velocity=(0.0, 0.0, 0.0)):
  """Put the ball somewhere, the table at home."""
  task.sim.qpos.copy_(task.home)
  task.sim.qvel.zero_()
  where, speed = task.motion()
  where.copy_(torch.tensor(position))
  speed.copy_(torch.tensor(velocity))


def test_the_robot_is_the_published_one(task):
  """Masses by the published figures: a cylinder, a sphere, cylinders with half spheres at their ends."""
  leg = 1000 * math.pi * 0.02**2 * (THIGH + 4 / 3 * 0.02)
  expected = [0.0, 100 * math.pi * 0.5**2 * 0.02, *[leg] * 6, 200 * 4 / 3 * math.pi * 0.1**3]
  assert task.model.body_mass.tolist() == pytest.approx(expected, rel=1e-4)
  assert task.dt * task.max_episode_steps == pytest.approx(5.0)  # [s]
  assert len(task.model.pairs) == 1  # ball and table


def test_the_observation_is_knees_targets_and_ball(task):
  place(task, (0.1, -0.2, 0.8), (1.0, 2.0, 3.0))
  task.sim.qpos[:, task.angles] = torch.tensor([0.1, 0.2, 0.3])
  task.sim.qvel[:, task.speeds] = torch.tensor([0.4, 0.5, 0.6])
  task.target.copy_(torch.tensor([0.7, 0.8, 0.9]))
  blocks = {name: values[0].tolist() for name, values in task.observe()["policy"].items()}
  assert blocks == {
    "angles": pytest.approx([0.1, 0.2, 0.3]),
    "speeds": pytest.approx([0.4, 0.5, 0.6]),
    "targets": pytest.approx([0.7, 0.8, 0.9]),
    "ball": pytest.approx([0.1, -0.2, 0.8]),
    "ball_velocity": [1.0, 2.0, 3.0],
  }


def test_reward_end_and_success_by_hand(task):
  place(task, (0.3, 0.4, 0.67), (0.0, 0.0, 1.0))
  task.action.copy_(torch.tensor([0.0, 0.6, -0.6]))
  assert task.reward()["motion"].tolist() == pytest.approx([0.24] * 2)
  assert task.reward()["balance"].tolist() == pytest.approx([1 / 3.5 / (4 / 3)] * 2)
  assert not task.success().any()
  place(task, (0.0, 0.0, 0.14))
  assert task.terminated().all()
  place(task, (0.03, 0.03, 0.67), (0.09, 0.0, 0.0))
  assert not task.terminated().any()
  assert task.success().all()
  place(task, (0.03, 0.05, 0.67))
  assert not task.success().any()


def test_targets_move_at_the_knees_speed_within_their_range(task):
  action = torch.tensor([1.0, -1.0, 0.5]).expand(2, 3)
  task.step(action)
  torch.testing.assert_close(task.target[0], torch.tensor([0.02, -0.02, 0.01]))
  for _ in range(40):
    task.step(action)
  torch.testing.assert_close(task.target[0, :2], torch.tensor([0.6, -0.6]))


def test_stretching_the_legs_lifts_the_table(task):
  """Each leg's hip is 2 x 0.36 sin(half the knee's angle) above its foot, if all are alike."""
  place(task, (0.0, 0.0, 0.6692))
  for step in range(75):
    task.step(torch.full((2, 3), 1.0 if step < 20 else 0.0))
  height = 0.02 + 2 * THIGH * math.sin((math.pi / 2 + 0.4) / 2) + 0.03
  assert task.target[0].tolist() == pytest.approx([0.4] * 3)
  assert task.sim.qpos[0, :3].tolist() == pytest.approx([0.0, 0.0, height], abs=5e-3)
  assert task.offset().max() < 1e-3


def test_the_ball_starts_above_the_table(make_task):
  task = make_task("ball_balance", num_envs=64)
  task.reset()
  position, velocity = task.motion()
  assert 0.15 < position[:, :2].abs().max() <= 0.2
  assert 0.4 < velocity[:, :2].abs().max() <= 0.5
  height = position[:, 2] - 0.669117
  assert 0.0 <= height.min() < 0.05
  assert 0.25 < height.max() <= 0.3


def balance(task):
  """Return the actions that raise the table, gently, where the ball is and where it rolls to."""
  position, velocity = task.motion()
  wanted = 0.5 * (position + velocity)[:, :2]
  angles = torch.arange(3) * 2 * math.pi / 3  # where the legs are
  knees = wanted @ torch.stack([angles.cos(), angles.sin()])
  return 0.2 * (knees - task.target) / (task.dt * task.config.knee_speed)


def test_a_simple_controller_balances_every_ball(make_task):
  task = make_task("ball_balance", num_envs=32)
  task.reset()
  for _ in range(249):
    assert not task.step(balance(task))["terminated"].any()
  step = task.step(balance(task))
  assert step["success"].all()
