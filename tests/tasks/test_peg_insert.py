"""Peg insert by hand: starts, rewards, and a script that solves it."""

import math

import pytest
import torch

HALF = 0.06  # of the peg's length [m]


@pytest.fixture
def task(make_task):
  task = make_task("peg_insert", num_envs=4)
  task.reset()
  return task


def put(task, offsets, turn=0.0, hole_turn=0.0):
  """Put the peg's end somewhere from the hole's, upright, both turned about the vertical."""
  task.sim.mocap_quat[:, 0] = torch.tensor([math.cos(hole_turn / 2), 0.0, 0.0, math.sin(hole_turn / 2)])
  peg = task.sim.qpos[:, task.peg]
  peg[:, :3] = task.sim.mocap_pos[:, 0] + torch.tensor(offsets) + torch.tensor([0.0, 0.0, HALF])
  peg[:, 3:] = torch.tensor([math.cos(turn / 2), 0.0, 0.0, math.sin(turn / 2)])


def rewards(task):
  task.update()
  return {name: (task.reward_weights[name] * term).tolist() for name, term in task.reward().items()}


def squashed(distance, slope, flat):
  return 1.0 / (math.exp(slope * distance) + flat + math.exp(-slope * distance))


def test_the_hand_holds_the_peg_wherever_it_starts(make_task):
  task = make_task("peg_insert", num_envs=256)
  task.reset()
  task.step(torch.zeros(256, task.num_actions))
  peg, hole = task.sim.qpos[:, task.peg], task.sim.mocap_pos[:, 0]
  offset = peg[:, :3] - task.sim.site_xpos[:, task.point]
  across = task.sim.xmat[:, task.hand, 1::3]
  assert (offset * across).sum(1).abs().max() < 5e-4  # in the middle between the fingers
  assert 0.0025 < offset[:, :2].norm(dim=1).max() < 0.0035
  assert 0.031 < -offset[:, 2].max() < -offset[:, 2].min() < 0.039
  assert 0.18 < 2.0 * peg[:, 6].asin().abs().max() < 0.21
  assert 0.09 < (hole - task.hole).abs().max() <= 0.1
  assert 0.3 < 2.0 * task.sim.mocap_quat[:, 0, 3].asin().abs().max() < 0.351
  before = offset.clone()
  for _ in range(20):
    step = task.step(torch.zeros(256, task.num_actions))
  slipped = peg[:, :3] - task.sim.site_xpos[:, task.point] - before
  assert slipped.norm(dim=1).max() < 1.5e-3
  assert not step["terminated"].any()


def test_nearness_by_hand(task):
  """The peg's points are as far from where they belong as the peg, or by how the hole is turned."""
  put(task, [[0.0, 0.0, 0.1], [0.03, 0.0, 0.04], [0.0, -0.01, 0.0], [0.0, 0.0, 0.0]])
  found = rewards(task)
  gaps = [0.1, 0.05, 0.01, 0.0]
  assert task.gap.tolist() == pytest.approx(gaps, abs=1e-6)
  assert found["far"] == pytest.approx([1.02 * squashed(gap, 5.0, 4.0) for gap in gaps], rel=1e-4)
  assert found["near"] == pytest.approx([squashed(gap, 50.0, 2.0) for gap in gaps], rel=1e-4)
  assert found["close"] == pytest.approx([squashed(gap, 100.0, 0.0) for gap in gaps], rel=1e-4)
  put(task, [[0.0, 0.0, 0.0]] * 4, turn=0.1, hole_turn=-0.2)
  rewards(task)
  assert task.gap.tolist() == pytest.approx([2.0 * 0.012 * math.sin(0.15)] * 4, rel=1e-3)


def test_depth_by_hand(task):
  """Over the hole, entered, at its end; as low, but beside the hole."""
  put(task, [[0.0, 0.0, 0.0451], [0.0, 0.002, 0.0449], [0.0, 0.002, 0.0019], [0.003, 0.003, 0.0]])
  found = rewards(task)
  assert found["entered"] == [0.0, 1.0, 1.0, 0.0]
  assert found["arrived"] == [0.0, 0.0, 1.0, 0.0]
  assert task.success().tolist() == [False, False, True, False]


def test_a_peg_that_leans_has_its_end_elsewhere(task):
  put(task, [[0.0, 0.0, 0.0]] * 4)
  task.sim.qpos[:, task.peg][:, 3:] = torch.tensor([math.cos(0.05), 0.0, math.sin(0.05), 0.0])
  task.update()
  expected = [-HALF * math.sin(0.1), 0.0, HALF * (1.0 - math.cos(0.1))]
  assert task.end[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_a_peg_out_of_the_fingers_ends_the_episode(task):
  away = torch.tensor([[0.0, 0.0, 0.079], [0.0, 0.0, 0.081], [0.1, 0.0, 0.0], [0.0, 0.0, 0.0]])
  task.sim.qpos[:, task.peg][:, :3] = task.sim.site_xpos[:, task.point] - away
  assert task.terminated().tolist() == [False, True, True, False]


def script(task, step):
  """Return actions that bring the peg over the hole, turn it, and push it down."""
  offset, _ = task.offsets()
  hand = task.sim.xmat[:, task.hand].unflatten(1, (3, 3))
  turn = torch.linalg.cross(hand[:, :, 2], torch.tensor([[0.0, 0.0, -1.0]]))
  hole, peg = task.sim.mocap_quat[:, 0], task.sim.qpos[:, task.peg][:, 3:]
  turn[:, 2] = 2.0 * (torch.atan2(hole[:, 3], hole[:, 0]) - torch.atan2(peg[:, 3], peg[:, 0]))
  goal = torch.tensor([0.0, 0.0, 0.07 if step < 40 else -0.01])
  return torch.cat([2.0 * (goal - offset) / task.config.osc_step, 2.0 * turn / task.config.osc_turn], 1)


def test_a_script_inserts_nearly_every_peg(make_task):
  task = make_task("peg_insert", num_envs=32)
  task.reset()
  for number in range(task.max_episode_steps):
    step = task.step(script(task, number))
  assert step["truncated"].all()
  assert step["success"].float().mean() > 0.9
  assert step["reward"].mean() > 2.5
