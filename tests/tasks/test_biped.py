"""The biped: its clock and its feet."""

import math

import pytest
import torch

from gpurobot.learn.random import Random
from tasks import biped


@pytest.fixture(scope="module")
def built():
  config = biped.Config(step_seconds=0.8)  # 40 control steps
  return biped.Task(config, 2, random=Random(0, 2), training=False)


@pytest.fixture
def task(built):
  """Return two environments at the start of an episode, built once: that takes seconds."""
  built.reset()
  return built


def test_its_joints_are_in_the_order_of_its_actuators(task):
  assert tuple(task.model.actuator_names) == task.joints
  assert task.home[7:].equal(task.stance)
  assert task.obs_dims["policy"] == 3 * 3 + 3 * 23 + 2


def test_the_clock_turns_once_in_the_time_of_a_step(task):
  seen = []
  for steps in (0, 10, 20, 40):
    task.episode_steps.fill_(steps)
    seen.append(task.observe()["policy"]["clock"][0])
  expected = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
  torch.testing.assert_close(torch.stack(seen), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
  ("steps", "loads", "gait"),
  [
    (10, (100.0, 0.0), 1.0),  # at a quarter of its turn the left foot stands, the right one swings
    (10, (0.0, 100.0), 0.0),
    (10, (100.0, 100.0), 0.5),
    (30, (0.0, 100.0), 1.0),
    (1, (100.0, 100.0), 1.0),  # within 0.05 of a turn both stand
  ],
)
def test_feet_are_paid_for_standing_and_swinging_by_the_clock(task, steps, loads, gait):
  task.command.fill_(0.5)
  task.episode_steps.fill_(steps)
  task.sim.sensordata[:, task.touch] = torch.tensor(loads)
  assert task.reward()["gait"].tolist() == [gait, gait]
  task.command.zero_()  # told to stand, both feet should
  assert task.reward()["gait"][0].item() == sum(load > 0 for load in loads) / 2


def test_rewards_of_the_feet_by_hand(task):
  task.command.fill_(0.5)
  task.episode_steps.fill_(10)
  task.sim.sensordata[:, task.touch] = torch.tensor([100.0, 0.0])
  task.sim.sensordata[:, task.moving] = torch.tensor([0.3, 0.4, 1.0, 2.0, 2.0, 2.0])
  task.sim.sensordata[:, task.turning].zero_()
  aim = 0.095 * math.sin(math.pi * 4 / 9) ** 2  # 0.2 of the right foot's swing of 0.45 turns are over
  task.sim.site_xpos[:, task.soles, 2] = 0.005 + torch.tensor([0.0, aim - 0.04])
  terms = task.reward()
  assert terms["slip"][0].item() == pytest.approx(0.25)  # of the left foot, along the ground
  assert terms["swing"][0].item() == pytest.approx(0.04**2)  # of the right one
  assert terms["alive"].tolist() == [1.0, 1.0]
  assert terms["load"].tolist() == [0.0, 0.0]
  task.sim.sensordata[:, task.touch] = torch.tensor([100.0, 50.0])
  assert task.reward()["load"].tolist() == pytest.approx([50.0 / (9.81 * task.model.body_mass.sum())] * 2)


def test_quiet_joints_move_less(task):
  task.sent.fill_(1.0)
  target = task.targets()[0, -1] - task.stance
  leg = [0.5, 0.25, 0.25, 0.5, 0.5, 0.5]
  torch.testing.assert_close(target, torch.tensor([*leg, *leg, *[0.25] * 11]))


def test_only_quiet_joints_count_for_the_pose(task):
  task.sim.qpos[:, 7:] = task.stance + 0.1
  assert task.reward()["pose"][0].item() == pytest.approx((2 * 2 + 1 + 2 * 5) * 0.01, rel=1e-4)


def test_a_robot_that_kneels_has_fallen(task):
  assert not task.terminated().any()
  task.sim.qpos[1, 2] = 0.49
  assert task.terminated().tolist() == [False, True]
