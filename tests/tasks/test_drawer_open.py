"""Drawer open by hand: rewards, and a script that solves it."""

import pytest
import torch


@pytest.fixture
def task(make_task):
  task = make_task("drawer_open", num_envs=4)
  task.reset()
  return task


def hold_at(task, offsets, opening=0.03):
  """Put the grasp point somewhere from the handle, the hand turned as the drawer is."""
  task.sim.site_xpos[:, task.point] = task.sim.site_xpos[:, task.handle] + torch.tensor(offsets)
  task.sim.xmat[:, task.hand] = torch.tensor([0.0, 0.0, 1.0, -1.0, 0.0, 0.0, 0.0, -1.0, 0.0])
  task.sim.qpos[:, task.fingers] = opening


def rewards(task):
  return {name: (task.reward_weights[name] * term).tolist() for name, term in task.reward().items()}


def test_the_closed_drawer_is_in_reach_and_stays_closed(make_task):
  task = make_task("drawer_open", num_envs=64)
  task.reset()
  for _ in range(5):
    step = task.step(torch.zeros(64, task.num_actions))
  assert step["metrics", "way"].abs().max() < 1e-4
  assert (task.sim.site_xpos[:, task.handle] - torch.tensor([0.74, 0.2, 0.5])).abs().max() < 1e-4
  assert 0.2 < task.to_handle().norm(dim=1).min() < task.to_handle().norm(dim=1).max() < 0.4
  assert task.hand_axes()[:, 0, 2].min() > 0.9


def test_nearness_and_alignment_by_hand(task):
  """Close to the handle, not so close, far; and close, but pointing away."""
  hold_at(task, [[0.0, 0.0, 0.019], [0.0, 0.0, 0.021], [-0.3, 0.0, 0.4], [0.0, 0.0, 0.019]])
  task.sim.xmat[3, task.hand] = torch.tensor([0.0, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0, -1.0, 0.0])
  task.action.fill_(0.5)
  found = rewards(task)
  close, near, far = ((1.0 + square) ** -2 for square in (0.019**2, 0.021**2, 0.25))
  assert found["near"] == pytest.approx([4.0 * close, 2.0 * near, 2.0 * far, 4.0 * close], rel=1e-4)
  assert found["turned"] == pytest.approx([0.5, 0.5, 0.5, 0.0], abs=1e-6)
  assert found["action"] == pytest.approx([-0.01 * 7 * 0.25] * 4)


def test_fingers_around_the_bar_by_hand(task):
  """Around it; around it, nearly closed; it is above both; it is beyond the fingertips."""
  hold_at(task, [[0.0, 0.05, 0.02], [0.0, -0.05, 0.0], [0.0, 0.0, -0.031], [-0.03, 0.0, 0.0]])
  task.sim.qpos[1, task.fingers] = 0.008
  found = rewards(task)
  assert found["around"] == [0.125, 0.125, 0.0, 0.0]
  assert found["closed"] == pytest.approx([5.0 * 0.02, 5.0 * 0.064, 0.0, 0.0], rel=1e-4)


def test_the_drawers_way_by_hand(task):
  """Closed; opened a little, held; halfway, let go; open, held."""
  hold_at(task, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-0.2, 0.0, 0.0], [0.0, 0.0, 0.0]])
  task.sim.qpos[:, task.drawer] = torch.tensor([[0.0], [0.01], [0.2], [0.395]])
  found = rewards(task)
  assert found["pulled"] == pytest.approx([0.0, 15.0 * 0.01, 7.5 * 0.2, 15.0 * 0.395], rel=1e-4)
  assert found["opened"] == pytest.approx([0.0, 0.5, 0.5, 0.5 * (1 + 1 + 2)])
  assert task.success().tolist() == [False, False, False, True]


def script(task):
  """Return actions that bring the hand before the bar, then around it, close it and pull."""
  to_handle, hand = task.to_handle(), task.hand_axes()
  around = task.is_around(hand, to_handle)
  closed = task.sim.qpos[:, task.fingers].sum(1) < 0.02
  beside = to_handle[:, 1:].norm(dim=1) > 0.015
  offset = to_handle.clone()
  offset[:, 0] = torch.where(beside, 0.0, torch.where(around & closed, -0.05, to_handle[:, 0]))
  turn = torch.linalg.cross(hand[:, :, 2], torch.tensor([[1.0, 0.0, 0.0]]))
  turn += torch.linalg.cross(hand[:, :, 1], torch.tensor([[0.0, 0.0, -1.0]]))
  opening = torch.where(around, -1.0, 1.0).unsqueeze(1)
  return torch.cat([2.0 * offset / task.config.osc_step, 2.0 * turn / task.config.osc_turn, opening], 1)


def test_a_script_opens_every_drawer(make_task):
  task = make_task("drawer_open", num_envs=32)
  task.reset()
  for _ in range(task.max_episode_steps):
    step = task.step(script(task))
  assert step["truncated"].all()
  assert step["success"].float().mean() > 0.9
