"""Falls and their ends: starts that lie, targets within ranges, what counts as standing, rewards by hand."""

import pytest
import torch

from gpurobot.learn.random import Random
from tasks.quadruped_getup import Config, Task, any_orientation
from tasks.shared import quat

LIMP = torch.zeros(32, 12)


@pytest.fixture(scope="module")
def made():
  """Return robots to be used by one test after the other."""
  return Task(Config(), 32, random=Random(0, 32), training=False)


@pytest.fixture
def task(made):
  """Return robots at the start of their episodes."""
  made.reset()
  return made


def stand(task):
  """Have the robots stand at home, free to move, without having moved."""
  task.sim.qpos.copy_(task.home.expand(32, -1))
  task.sim.qvel.zero_()
  task.waits.zero_()
  task.sim.forward()


def test_orientations_are_uniform():
  """The mean of a uniform rotation's matrix is zero, that of its squared entries a third."""
  q = any_orientation(torch.rand(4000, 3, generator=torch.Generator().manual_seed(0)))
  torch.testing.assert_close(q.norm(dim=1), torch.ones(4000))
  rotation = quat.to_matrix(q)
  torch.testing.assert_close(rotation.mean(0), torch.zeros(3, 3), atol=0.04, rtol=0)
  torch.testing.assert_close(rotation.square().mean(0), torch.full((3, 3), 1 / 3), atol=0.03, rtol=0)


def test_robots_are_dropped_and_lie_when_they_may_move(task):
  assert task.sim.qpos[:, 2].eq(task.config.drop_height).all()
  angles = task.sim.qpos[:, task.angles]
  assert ((task.low <= angles) & (angles <= task.high)).all()
  assert (angles - task.stance).abs().mean() > 0.5
  held = task.held.clone()
  full = torch.ones(32, 12)
  for _ in range(35):  # 0.7 s
    task.step(full)
    assert task.sim.ctrl.equal(held)
  assert task.waits.max() < 0.01
  assert task.sim.qpos[:, 2].max() < 0.35
  assert task.sim.qvel[:, :3].norm(dim=1).median() < 0.3
  task.step(full)
  assert not task.sim.ctrl.equal(held)


def test_the_servos_go_to_angles_about_the_joints_own_within_their_ranges(task):
  stand(task)
  action = torch.zeros(32, 12)
  action[:, 1], action[:, 2] = -1.0, 1.0  # a thigh, and a calf that comes to its end
  task.action.copy_(action)
  task.control()
  expected = task.stance.expand(32, -1).clone()
  expected[:, 1] -= task.config.action_scale
  expected[:, 2] += task.config.action_scale
  torch.testing.assert_close(task.sim.ctrl, expected)
  task.sim.qpos[:, task.angles] = task.high
  task.action.fill_(1.0)
  task.control()
  torch.testing.assert_close(task.sim.ctrl, task.high.expand(32, -1))


def test_standing_upright_high_and_still_is_success_and_nothing_less(task):
  stand(task)
  task.sim.qpos[1, 2] = 0.2
  task.sim.qpos[2, 3:7] = torch.tensor([0.9, 0.436, 0, 0])  # rolled by 52 degrees
  task.sim.qpos[3, 3:7] = torch.tensor([0.0, 1, 0, 0])  # on the back
  task.sim.qvel[4, 1] = 0.3
  task.sim.qvel[5, 1] = 0.1
  assert task.success()[:6].tolist() == [True, False, False, False, False, True]


def test_rewards_by_hand(task):
  stand(task)
  task.sim.qpos[1, 3:7] = torch.tensor([0.0, 1, 0, 0])  # on the back
  task.sim.qpos[2, 2] = 0.13  # half as high
  task.sim.qpos[3, task.angles.start] += 0.5  # a hip
  task.sim.qvel[4, task.speeds.start] = 3.0
  task.sim.qpos[5, task.angles.start] = task.high[0]
  terms = task.reward()
  expected = {
    "upright": [1.0, 0.0, 1, 1, 1],
    "height": [1.0, 1.0, 0.5, 1, 1],
    "pose": [1.0, 0.0, 0.5, 0.894839, 1],  # exp(-0.25 / 2.25)
    "still": [1.0, 0.0, 0.5, 1, 0.367879],
    "limit": [0.0, 0, 0, 0, 0],
  }
  for name, values in expected.items():
    torch.testing.assert_close(terms[name][:5].float(), torch.tensor(values))
  assert terms["limit"][5] == 1


def test_a_robot_at_home_holds_itself_up_and_earns_almost_all(task):
  stand(task)
  for _ in range(50):
    step = task.step((task.stance - task.sim.qpos[:, task.angles]) / task.config.action_scale)
  assert step["metrics", "standing"].eq(1).all()
  assert step["reward"].mean() > 3.5


def test_some_start_at_home_in_training_alone():
  task = Task(Config(start_standing=0.5), 64, random=Random(0, 64), training=True)
  task.reset()
  standing = (task.sim.qpos == task.home).all(1)
  assert 16 < standing.sum() < 48
  assert task.held[standing].eq(task.stance).all()
  limits = (task.sim.geom_friction[:, :, 0].min(), task.sim.geom_friction[:, :, 0].max())
  assert 0.5 <= limits[0] < 0.7
  assert 1.0 < limits[1] <= 1.25


def test_the_servos_go_about_late_angles_but_no_wrong_zero_moves_them():
  errors = {"encoder_bias": 0.1, "encoder_latency": 0.02}
  task = Task(Config(lying_seconds=0.0, **errors), 32, random=Random(0, 32), training=True)
  task.reset()
  first = task.sim.qpos[:, task.angles].clone()
  for _ in range(2):
    task.step(LIMP)
    torch.testing.assert_close(task.sim.ctrl, first.clamp(task.low, task.high))
  assert not torch.allclose(task.observe()["policy"]["angles"], task.observe()["critic"]["angles"])
