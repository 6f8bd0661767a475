"""Arm reach by hand: goals, rewards, and scripts that solve it."""

import math

import pytest
import torch

from tasks.shared import quat


@pytest.fixture
def task(make_task):
  task = make_task("arm_reach", num_envs=2)
  task.reset()
  return task


def put_goal(task, offset, axis, angle):
  """Put both goals at an offset and a turn about a world axis from the grasp point."""
  task.goal_position.copy_(task.sim.site_xpos[:, task.point] + torch.tensor(offset))
  turn = torch.tensor([math.cos(angle / 2), *(math.sin(angle / 2) * number for number in axis)])
  task.goal_rotation.copy_(quat.multiply(turn, task.sim.xquat[:, task.hand]))
  task.update()


def test_goals_fill_the_box_and_the_cone(make_task):
  task = make_task("arm_reach", num_envs=512)
  task.reset()
  place, config = task.goal_position, task.config
  for axis, (low, high) in enumerate([(0.35, 0.6), (-0.3, 0.3), (0.1, 0.5)]):
    assert (place[:, axis].min() - low).abs() < 0.01
    assert (place[:, axis].max() - high).abs() < 0.01
  rotation = quat.to_matrix(task.goal_rotation)
  tilt = torch.acos(-rotation[:, 2, 2])  # of the fingers, the hand's z axis, to the downward vertical
  assert 0.55 < tilt.max() <= config.goal_tilt + 1e-4
  down = quat.to_matrix(torch.tensor([0.0, 1.0, 0.0, 0.0]))
  turned = quat.multiply(task.goal_rotation, torch.tensor([0.0, -1.0, 0.0, 0.0]))
  angle = quat.to_rotation_vector(turned).norm(dim=1)
  assert down[2, 2] == -1.0
  assert 1.0 < angle.max() <= config.goal_tilt + config.goal_turn


def test_reward_by_hand(task):
  put_goal(task, (0.03, -0.04, 0.0), (0.0, 0.0, 1.0), 0.25)
  task.action.fill_(0.5)
  weighted = {name: task.reward_weights[name] * term[0].item() for name, term in task.reward().items()}
  expected = {
    "distance": -0.05,
    "angle": -0.2 * 0.25,
    "precise": (1.0 - math.tanh(0.5)) * (1.0 - math.tanh(0.5)),
    "action": -0.01 * 7 * 0.25,
  }
  assert weighted == pytest.approx(expected, rel=1e-3)


def test_success_is_within_two_centimetres_and_a_fifth_of_a_radian(task):
  for offset, angle, expected in (
    (0.019, 0.19, True),
    (0.021, 0.19, False),
    (0.019, 0.21, False),
  ):
    put_goal(task, (0.0, 0.0, offset), (1.0, 0.0, 0.0), angle)
    assert task.success().tolist() == [expected] * 2


def test_the_policy_sees_the_way_to_the_goal(task):
  put_goal(task, (0.1, 0.2, -0.3), (0.0, 1.0, 0.0), -0.4)
  blocks = task.observe()["policy"]
  torch.testing.assert_close(blocks["offset"][0], torch.tensor([0.1, 0.2, -0.3]), atol=1e-5, rtol=0.0)
  torch.testing.assert_close(blocks["turn"][0], torch.tensor([0.0, -0.4, 0.0]), atol=1e-5, rtol=0.0)


def towards_goal(task):
  """Return actions that pull the grasp point to the goal."""
  offset, turn = task.pose_error()
  if task.config.control == "osc":
    return torch.cat([offset / task.config.osc_step, turn / task.config.osc_turn], 1)
  jacobian = task.jacobian().permute(2, 0, 1)
  damped = jacobian @ jacobian.mT + 0.01 * torch.eye(6)  # near a singularity joints would have to race
  change = jacobian.mT @ torch.linalg.solve(damped, torch.cat([offset, turn], 1).unsqueeze(2))
  return change.squeeze(2) / task.config.joint_step


@pytest.mark.parametrize("control", ["joint", "osc"])
def test_a_script_reaches_nearly_every_goal(make_task, control):
  task = make_task("arm_reach", num_envs=64, control=control)
  task.reset()
  for _ in range(task.max_episode_steps):
    step = task.step(towards_goal(task))
  assert step["truncated"].all()
  assert step["success"].float().mean() > 0.95
  assert step["metrics", "distance"].median() < 0.005
