"""Common parts of runners: progress, starts, mirror images, by hand and beside MuJoCo C."""

import pytest
import torch

import tasks
from gpurobot.learn.random import Random
from physics.parity import MujocoSimulation
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


def test_a_mirrored_robot_moves_as_the_mirror_shows(runner, make_task, actions):
  task, twin = make_task(runner), make_task(runner)
  (index, sign), (action_index, action_sign) = task.mirror["policy"], task.mirror["action"]
  task.reset(), twin.reset()
  felt = torch.zeros(())
  for action in actions(task, 30):
    for view, base_signs, joints in (
      ("qpos", [1, -1, 1, 1, -1, 1, -1], task.angles),
      ("qvel", [1, -1, 1, -1, 1, -1], task.speeds),
    ):
      ours, theirs = getattr(task.sim, view), getattr(twin.sim, view)
      theirs[:, : len(base_signs)] = torch.tensor(base_signs) * ours[:, : len(base_signs)]
      theirs[:, joints] = action_sign * ours[:, joints][:, action_index]
    step, mirrored = task.step(action), twin.step(action_sign * action[:, action_index])
    expected = sign * step["final_obs", "policy"][:, index]
    torch.testing.assert_close(mirrored["final_obs", "policy"], expected, rtol=1e-3, atol=1e-3)
    felt = torch.maximum(felt, task.observe()["policy"]["feet"].abs().max())
  assert felt > 0.1  # feet have touched the floor


def test_the_same_task_runs_on_mujoco_and_agrees(runner, make_task, actions):
  module = tasks.load(runner)
  ours = make_task(runner, num_envs=4)
  simulation = MujocoSimulation(ours.model, 4, ours.outputs)
  theirs = module.Task(module.Config(), 4, random=Random(0, 4), training=False, simulation=simulation)
  torch.testing.assert_close(theirs.reset()["policy"], ours.reset()["policy"], rtol=1e-3, atol=1e-3)
  for action in actions(ours, 5):
    mine, other = ours.step(action), theirs.step(action)
  assert other["obs", "policy"].dtype == torch.float32
  torch.testing.assert_close(other["obs", "policy"], mine["obs", "policy"], rtol=1e-2, atol=1e-2)
  torch.testing.assert_close(other["reward"], mine["reward"], rtol=1e-2, atol=1e-2)
