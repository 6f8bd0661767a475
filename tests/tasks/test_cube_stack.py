"""Cube stack by hand: starts, rewards, and a script that solves it."""

import math

import pytest
import torch

from tasks.shared import quat

WAY_UP = 0.19  # height at which the script carries the cube [m]


@pytest.fixture
def task(make_task):
  task = make_task("cube_stack", num_envs=4)
  task.reset()
  return task


def put(task, name, positions):
  """Put a cube somewhere, unturned."""
  pose = task.sim.qpos[:, task.qpos_of(name)]
  pose[:, :3], pose[:, 3:] = torch.tensor(positions), torch.tensor([1.0, 0.0, 0.0, 0.0])


def hold_at(task, points, opening=0.03):
  """Put the grasp point somewhere, the hand pointing down."""
  task.sim.site_xpos[:, task.point] = torch.tensor(points)
  task.sim.xmat[:, task.hand] = torch.tensor([1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, -1.0])
  task.sim.qpos[:, task.fingers] = opening


def rewards(task):
  task.update()
  return {name: (task.reward_weights[name] * term).tolist() for name, term in task.reward().items()}


def test_cubes_start_apart_in_either_order_and_stay_where_they_lie(make_task):
  task = make_task("cube_stack", num_envs=256)
  task.reset()
  start = task.poses().clone()
  apart = start[:, 1, 1] - start[:, 0, 1]
  assert 0.12 - 1e-6 < apart.abs().min() < 0.13
  assert 0.4 < (apart > 0).float().mean() < 0.6
  assert 0.14 < (start[:, :, 0] - 0.458).abs().max() < 0.15 + 1e-6
  assert 0.14 < start[:, :, 1].abs().max() < 0.15 + 1e-6
  turn = 2.0 * torch.atan2(start[:, :, 6], start[:, :, 3])
  assert 0.7 < turn.abs().max() < 0.785 + 1e-6
  for _ in range(5):
    task.step(torch.zeros(256, task.num_actions))
  assert (task.poses() - start).abs().max() < 1e-3


def test_reaching_and_lifting_by_hand(task):
  """A cube on the table, 0.04 m below the grasp point; one 1 mm too low to count as lifted; lifted ones.

  Cubes are 0.05 and 0.07 m high: the place is 0.06 m above the other's middle. The fingertips are 0.03 m
  aside.
  """
  put(task, "cube_b", [[0.45, 0.1, 0.035]] * 4)
  cubes = [[0.45, -0.1, 0.025], [0.45, 0.07, 0.089], [0.45, 0.07, 0.135], [0.45, 0.1, 0.295]]
  put(task, "cube_a", cubes)
  hold_at(task, [[x, y, z + 0.04] for x, y, z in cubes[:1]] + cubes[1:])
  distances = [(0.04 + 2 * 0.05) / 3, 0.02, 0.02, 0.02]  # the mean of grasp point and fingertips
  lift = [0.0, 0.064 / 0.065, 1.0, 1.0]
  distance = [math.hypot(0.2, 0.07), math.hypot(0.03, 0.006), 0.05, 0.2]
  aligned = [part * (1.0 - math.tanh(5.0 * d)) for part, d in zip(lift, distance, strict=True)]
  reach = [max(1.0 - math.tanh(10.0 * d), part) for d, part in zip(distances, aligned, strict=True)]
  found = rewards(task)
  assert found["reach"] == pytest.approx([0.5 * part for part in reach], rel=1e-4)
  assert found["lift"] == pytest.approx([1.5 * part for part in lift], abs=1e-5)
  assert found["aligned"] == pytest.approx([2.0 * part for part in aligned], rel=1e-4)
  assert found["stacked"] == [0.0] * 4


def test_a_cube_that_is_tipped_is_not_lifted(task):
  """A cube of 0.05 m on its edge; on its corner; its edge 0.013 m above the table; flat on its side."""
  edge, corner = 0.025 * math.sqrt(2.0), 0.025 * math.sqrt(3.0)
  put(task, "cube_a", [[0.45, -0.1, height] for height in (edge, corner, edge + 0.013, 0.025)])
  quarter, third = math.pi / 8, math.acos(1.0 / math.sqrt(3.0)) / 2  # half the angles of rotation
  turns = [
    [quarter, 1.0, 0.0],
    [third, math.sqrt(0.5), -math.sqrt(0.5)],
    [quarter, 0.0, 1.0],
    [2.0 * quarter, 1.0, 0.0],
  ]
  rotated = [[math.cos(half), math.sin(half) * x, math.sin(half) * y, 0.0] for half, x, y in turns]
  task.sim.qpos[:, task.qpos_of("cube_a")][:, 3:] = torch.tensor(rotated)
  assert rewards(task)["lift"] == pytest.approx([0.0, 0.0, 1.5 * 0.013 / 0.065, 0.0], abs=1e-5)


def test_a_cube_on_another_side_looks_as_before(task):
  """Turned by 0.3 rad about the vertical; and before that by a quarter about x, about y, and by a half."""
  half = math.sqrt(0.5)
  sides = torch.tensor(
    [[1.0, 0.0, 0.0, 0.0], [half, half, 0.0, 0.0], [half, 0.0, half, 0.0], [0.0, 0.0, 1.0, 0.0]]
  )
  turned = quat.multiply(torch.tensor([math.cos(0.15), 0.0, 0.0, math.sin(0.15)]).expand(4, 4), sides)
  task.sim.qpos[:, task.qpos_of("cube_a")][:, 3:] = turned
  seen = task.observe()["policy"]["cube_axes"]
  torch.testing.assert_close(seen, seen[:1].expand_as(seen))
  torch.testing.assert_close(seen[0, :, 1], torch.tensor([0.0, 0.0, 1.0]))
  torch.testing.assert_close(seen[0, :, 0], torch.tensor([-math.sin(0.3), math.cos(0.3), 0.0]))


def test_a_hand_that_points_down_by_hand(task):
  """The hand points down, to the side, up, and 60 degrees from down."""
  hold_at(task, [[0.45, 0.0, 0.2]] * 4)
  task.sim.xmat[:, task.hand, 8] = torch.tensor([-1.0, 0.0, 1.0, -0.5])
  assert rewards(task)["down"] == pytest.approx([0.2, 0.1, 0.0, 0.15])


def test_a_cube_in_its_place_let_go_is_all_that_counts(task):
  """In its place; still held; too far aside; too high."""
  put(task, "cube_b", [[0.45, 0.1, 0.035]] * 4)
  put(task, "cube_a", [[0.45, 0.119, 0.095], [0.45, 0.119, 0.095], [0.45, 0.121, 0.095], [0.45, 0.1, 0.116]])
  hold_at(task, [[0.45, 0.119, 0.136], [0.45, 0.119, 0.134], [0.45, 0.119, 0.197], [0.45, 0.1, 0.197]])
  task.sim.ctrl[:, task.gripper] = 0.04
  stacked = 24.0 * (1.0 - 0.019 / 0.04)  # half of it at the tolerance of 0.02 m
  found = rewards(task)
  assert found["stacked"] == pytest.approx([stacked, 0.0, 0.0, 0.0])
  assert found["released"] == pytest.approx([0.0, 4.0 * (0.039 / 0.04 + 0.5) / 2.0, 0.0, 0.0], rel=1e-3)
  sums = [sum(terms) for terms in zip(*found.values(), strict=True)]
  assert [total == pytest.approx(stacked) for total in sums] == [True, False, False, False]
  assert task.success().tolist() == [True, False, False, False]


def test_a_cube_that_falls_ends_the_episode(task):
  put(task, "cube_a", [[0.45, -0.1, 0.025], [0.45, -0.9, 0.0], [0.45, -0.1, 0.025], [0.45, -0.1, 0.025]])
  put(task, "cube_b", [[0.45, 0.1, 0.035], [0.45, 0.1, 0.035], [1.2, 0.1, 0.0], [0.45, 0.1, 0.035]])
  step = task.step(torch.zeros(4, task.num_actions))
  assert step["terminated"].tolist() == [False, True, True, False]


def test_a_hand_that_turns_to_the_side_ends_the_episode(task):
  """The hand points down, 0.49 and 0.51 rad from down, and up."""
  tilts = torch.tensor([0.0, 0.49, 0.51, math.pi])
  task.sim.xmat[:, task.hand, 8] = -tilts.cos()
  assert task.terminated().tolist() == [False, False, True, True]


def script(task, step):
  """Return actions that take the cube, carry it over its place, put it down and let it go."""
  point, cube, place = task.positions()
  over = place.clone()
  over[:, 2] = WAY_UP
  rise = torch.tensor([0.0, 0.0, 0.05])
  offsets = {
    15: cube + 2.0 * rise - point,
    35: cube - point,
    40: rise.expand_as(cube),
    65: over - cube,
    80: place - cube,
    85: 0.0 * cube,
    100: rise.expand_as(cube),
  }
  turn = torch.zeros_like(cube)
  if step < 35:
    angle = 2.0 * torch.atan2(task.poses()[:, 0, 6], task.poses()[:, 0, 3])
    turn[:, 2] = angle - torch.atan2(task.sim.xmat[:, task.hand, 3], task.sim.xmat[:, task.hand, 0])
  offset = next(offset for end, offset in offsets.items() if step < end)
  opening = torch.full_like(cube[:, :1], -1.0 if 28 <= step < 80 else 1.0)
  return torch.cat([offset / task.config.osc_step, turn / task.config.osc_turn, opening], 1)


def test_a_script_stacks_nearly_every_cube(make_task):
  task = make_task("cube_stack", num_envs=32)
  task.reset()
  for number in range(task.max_episode_steps):
    step = task.step(script(task, number))
  assert step["truncated"].all()
  assert step["success"].float().mean() > 0.9
  assert step["reward"].mean() > 14.0
