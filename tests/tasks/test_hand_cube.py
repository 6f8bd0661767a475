"""The hand's numbers by hand: angles, new targets, the count, drops."""

import math

import pytest
import torch

from gpurobot.learn.random import Random
from tasks import hand_cube
from tasks.hand_cube import angle_between
from tasks.shared import quat


@pytest.fixture(scope="module")
def built():
  """Build the hand once: tracing so large a model takes a second."""
  return hand_cube.Task(hand_cube.Config(), 8, random=Random(0, 8), training=False)


@pytest.fixture
def task(built):
  built.reset()
  return built


def turn(angle, axis=(0.0, 0.0, 1.0)):
  """Return the quaternion of a turn about an axis of length 1."""
  return torch.tensor([math.cos(angle / 2), *(math.sin(angle / 2) * part for part in axis)])


def orientation(task):
  return task.sim.qpos[:, task.cube][:, 3:]


def aim(task, angle):
  """Put each cube as it was drawn, its target a turn by so much about the vertical."""
  orientation(task).copy_(turn(0.0))
  task.target.copy_(turn(angle))
  task.angle.fill_(angle)


def weighted(task):
  return {name: task.reward_weights[name] * term[0].item() for name, term in task.reward().items()}


def test_the_angle_between_orientations_does_not_see_a_quaternions_sign():
  axis = (1 / 3, 2 / 3, -2 / 3)
  a, b = turn(0.5, axis), turn(-0.3, axis)
  pairs = torch.stack([b, -b, a, -a])
  assert angle_between(a.expand(4, 4), pairs).tolist() == pytest.approx([0.8, 0.8, 0.0, 0.0], abs=2e-3)
  assert angle_between(turn(3.0)[None], turn(-2.0)[None]).item() == pytest.approx(2 * math.pi - 5.0)


def test_an_episode_starts_with_a_turn_to_do(make_task):
  task = make_task("hand_cube", num_envs=64)
  task.reset()
  angle = angle_between(orientation(task), task.target)
  torch.testing.assert_close(angle, task.angle)
  assert 0.5 - 1e-3 <= angle.min() < 0.8
  assert 2.8 < angle.max() <= math.pi + 1e-3
  moved = task.sim.qpos[:, task.angles] - task.start
  assert 0.04 < moved.abs().max() <= 0.05 + 1e-6
  assert task.command.equal(task.sim.qpos[:, task.angles])


def test_the_turn_to_the_target_is_seen_in_the_world(task):
  """A cube on its side (a quarter turn about x) whose target is a quarter turn about the vertical further."""
  side = turn(math.pi / 2, (1.0, 0.0, 0.0))
  orientation(task).copy_(side)
  task.target.copy_(quat.multiply(turn(math.pi / 2), side))
  blocks = task.observe()["policy"]
  columns = torch.tensor([[0.0, -1.0], [1.0, 0.0], [0.0, 0.0]])
  torch.testing.assert_close(blocks["turn"][0], columns, atol=1e-6, rtol=0)
  assert blocks["lies"].abs().max() < 1e-3
  orientation(task).copy_(quat.multiply(turn(0.3), side))
  torch.testing.assert_close(task.observe()["policy"]["lies"][0], torch.tensor([0.0, 0.0, 0.3]))


def test_the_reward_of_a_turn_by_hand(task):
  aim(task, 1.0)
  orientation(task).copy_(turn(0.3))
  task.sim.qpos[:, task.cube][:, 0] += 0.05
  task.action.fill_(0.5)
  task.update()
  expected = {
    "success": 0.0,
    "progress": 3 * 0.3,
    "near": 0.01 / (0.7 + 0.1),
    "offset": -0.2 * 0.05,
    "action": -4e-6 * 16 * 0.25,
    "dropped": 0.0,
  }
  assert weighted(task) == pytest.approx(expected, rel=1e-3)


def test_a_target_that_is_reached_counts_and_gives_way_to_a_new_one(task):
  aim(task, 0.5)
  orientation(task)[:4] = turn(0.11)
  task.update()
  assert task.reached.tolist() == [True] * 4 + [False] * 4
  assert task.successes.tolist() == [1.0] * 4 + [0.0] * 4
  assert weighted(task)["success"] == 5.0
  assert weighted(task)["progress"] == pytest.approx(3 * 0.11, rel=1e-2)
  turned = angle_between(task.target, turn(0.5).expand(8, 4))
  assert (turned[:4] > 0.5 - 1e-3).all()
  assert turned[4:].max() < 2e-3
  torch.testing.assert_close(task.angle, angle_between(orientation(task), task.target))
  task.update()  # the jump of the target is no progress
  assert task.gained[:4].abs().max() < 1e-3


def test_a_dropped_cube_ends_the_episode_and_the_count(task):
  task.successes.fill_(3.0)
  task.sim.qpos[:4, task.cube][:, 2] -= 0.11
  step = task.step(torch.zeros(8, 16))
  assert step["terminated"].tolist() == [True] * 4 + [False] * 4
  assert step["reward_terms", "dropped"].tolist() == [-0.5] * 4 + [0.0] * 4
  assert step["metrics", "consecutive_successes"].tolist() == [3.0] * 8
  assert task.successes.tolist() == [0.0] * 4 + [3.0] * 4


def test_actions_move_the_joints_targets_within_their_ranges(task):
  start = task.command.clone()
  task.step(torch.full((8, 16), -0.5))
  expected = (start - 0.5 * 6.0 * 0.03).clamp(task.low, task.high)
  torch.testing.assert_close(task.sim.ctrl, expected)
  for _ in range(20):
    task.step(torch.full((8, 16), -1.0))
  assert task.sim.ctrl.equal(task.low.expand(8, 16))


def test_the_critic_feels_what_the_policy_does_not(task):
  blocks = task.observe()
  assert {*blocks["critic"]} - {*blocks["policy"]} == {"touch", "tips"}
  tips = blocks["critic"]["tips"].view(8, 4, 3)
  assert (tips[:, :3, 1].diff(dim=1) > 0.02).all()  # index, middle, ring: from right to left
  close = torch.zeros(8, 16)
  close[:, 2::4] = close[:, 3::4] = 1.0  # the last two joints of each finger
  for _ in range(20):
    task.step(close)
  force = task.observe()["critic"]["touch"]
  assert (force > 0.1).any(1).all()
  assert force.max() <= 10.0


def test_velocities_can_be_hidden_from_the_policy(built):
  config = hand_cube.Config(see_velocity=False)
  blind = hand_cube.Task(config, 8, random=Random(0, 8), training=False, simulation=built.sim)
  assert built.obs_dims["policy"] - blind.obs_dims["policy"] == 16 + 6
  assert built.obs_dims["critic"] == blind.obs_dims["critic"]
