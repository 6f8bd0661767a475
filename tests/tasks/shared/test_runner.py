"""Common parts of runners: progress and starts, by hand."""

import pytest
import torch

from gpurobot.learn.random import Random
from tasks import ant


@pytest.fixture(params=["ant", "humanoid"])
def runner(request):
  return request.param


def test_progress_is_exact_far_from_the_start(runner, make_task):
  """The target's distance changes by 1 mm: as a difference of two float32 distances that would be 6 % off."""
  task = make_task(runner)
  task.reset()
  task.sim.qpos[:, :2] = torch.tensor([3.001, 0.0])
  task.before.copy_(torch.tensor([3.0, 0.0]).expand(8, 2))
  assert task.reward()["progress"][0].item() == pytest.approx(0.001 * 60, rel=2e-3)


def test_episodes_start_near_home_within_the_joint_ranges(runner, make_task):
  task = make_task(runner, num_envs=64)
  task.reset()
  angles = task.sim.qpos[:, task.angles]
  home = torch.tensor(task.model.qpos0, dtype=torch.float32)
  assert (angles >= task.low).all()
  assert (angles <= task.high).all()
  assert 0.15 < (angles - home[task.angles]).abs().max() <= 0.2
  assert task.sim.qpos[:, :7].equal(home[:7].expand(64, 7))
  assert task.sim.qvel[:, :6].abs().max() == 0.0
  assert 0.05 < task.sim.qvel.abs().max() <= 0.1


def test_motors_may_come_in_any_order():
  """A robot whose motors are in another order than its joints has all per-motor numbers in that order."""
  lines = ant.Task.robot.read_text().splitlines()
  motors = [line for line in lines if "<motor name=" in line]
  first, order = lines.index(motors[0]), [3, 0, 7, 1, 5, 2, 6, 4]
  lines[first : first + len(motors)] = [motors[i] for i in order]

  class Shuffled(ant.Task):
    robot = "\n".join(lines)

  one, other = (kind(ant.Config(), 4, random=Random(0, 4), training=False) for kind in (ant.Task, Shuffled))
  action = torch.rand(4, 8) - 0.5
  one.reset(), other.reset()
  other.sim.qpos[:], other.sim.qvel[:] = one.sim.qpos, one.sim.qvel
  one.step(action), other.step(action[:, order])
  assert isinstance(other.angles, torch.Tensor)
  torch.testing.assert_close(other.sim.qpos, one.sim.qpos)
  torch.testing.assert_close(other.sim.qvel[:, other.speeds], one.sim.qvel[:, one.speeds][:, order])
  torch.testing.assert_close(other.reward()["energy"], one.reward()["energy"])
