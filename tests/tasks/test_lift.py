"""Lift: a script grasps and lifts with the gripper that is found, and sizes follow the arm."""

import functools
import math

import pytest
import torch

from tasks import lift
from tests.physics.robot.arms import write
from tests.physics.robot.test_gripper import SLIDES, gripping
from tests.tasks import in_mujoco

build = functools.partial(in_mujoco.build, lift)


def script(task):
  """Return actions that go above the cube, then down, close the gripper, and bring the cube to its goal."""
  cube, point, side = (
    task.sim.xpos[:, task.cube],
    task.sim.site_xpos[:, task.tips].mean(1),
    task.found.gripper.side,
  )
  offset = cube - point
  beside = offset[:, :2].norm(dim=1) > 0.3 * side
  near = offset.norm(dim=1) < 0.4 * side
  closed = (task.sim.site_xpos[:, task.tips].diff(dim=1).norm(dim=2) < 1.1 * side).squeeze(1)
  offset[:, 2] += 1.5 * side * beside
  way = torch.where((near & closed).unsqueeze(1), task.goal_position - cube, offset)
  move = 4.0 * way / (task.config.hand_speed * task.found.reach) * ~(near & ~closed).unsqueeze(1)
  hand, box = (
    x.unflatten(1, (3, 3))[:, :2] for x in (task.sim.site_xmat[:, task.point], task.sim.xmat[:, task.cube])
  )
  angle = torch.atan2(box[:, 1, 0], box[:, 0, 0]) - torch.atan2(hand[:, 1, 1], hand[:, 0, 1])
  turn = (angle + math.pi / 4).remainder(math.pi / 2) - math.pi / 4
  grip = torch.where(near, -1.0, 1.0)
  return torch.cat([move, turn.unsqueeze(1), grip.unsqueeze(1)], 1).float()


def test_a_script_lifts_the_cube_to_its_goal():
  task = build(4)
  task.reset()
  for _ in range(80):
    step = task.step(script(task))
  assert task.success().all()
  assert (task.sim.xpos[:, task.cube, 2] - task.rest > 0.5 * task.config.goal_low).all()
  assert (task.downward() > 0.95).all()
  assert not step["terminated"].any()


def test_an_action_of_zero_holds_the_arm_still_and_half_open():
  task = build(start_angle=0.0)
  task.reset()
  before = task.sim.site_xpos[:, task.point].clone()
  for _ in range(20):
    task.step(torch.zeros(2, 5))
  assert (task.sim.site_xpos[:, task.point] - before).norm(dim=1).max() < 3e-3
  assert task.observe()["policy"]["opening"].flatten().tolist() == pytest.approx([0.04] * 2, abs=3e-3)


def test_an_action_moves_the_hand_along_the_world_axes_and_turns_it():
  task = build(1, start_angle=0.0)
  for index in range(4):
    task.reset()
    place, turn = task.sim.site_xpos[0, task.point].clone(), task.sim.site_xmat[0, task.point].clone()
    for _ in range(8):
      task.step(torch.eye(5)[index : index + 1] * 0.3)
    moved = task.sim.site_xpos[0, task.point] - place
    if index < 3:
      assert moved[index] > 0.02
      assert moved[index] > 4 * moved.abs().sum() - 4 * moved[index].abs()
    else:
      axis = turn.unflatten(0, (3, 3))[:, 1].cross(
        task.sim.site_xmat[0, task.point].unflatten(0, (3, 3))[:, 1], dim=0
      )
      assert axis[2] > 0.08
      assert moved.abs().max() < 0.01


def test_cube_goals_and_rewards_follow_gripper_and_reach(tmp_path):
  task = build(256, robot=write(tmp_path, gripping(SLIDES)))
  found, config = task.found, task.config
  assert task.near == pytest.approx(math.sqrt(0.1 * found.reach / 0.95 * 2 * found.gripper.side))
  assert config.success_distance == pytest.approx(min(0.6 * found.gripper.side, 0.2 * found.table.highest))
  assert (config.cube_ahead, config.cube_side) == tuple(found.table.half)
  task.reset()
  height = task.goal_position[:, 2] - task.rest
  assert height.min() == pytest.approx(0.4 * found.table.highest, rel=0.05)
  assert height.max() == pytest.approx(found.table.highest, rel=0.05)
  assert (
    build(robot=write(tmp_path, gripping(SLIDES)), goal_high=0.05, goal_low=0.02).config.goal_high == 0.05
  )


def test_training_starts_now_and_then_with_the_cube_in_the_hand():
  task = build(64, training=True, keep_states=0, start_held=0.5)
  task.reset()
  task.episode_steps.zero_()
  held = task.sim.xpos[:, task.cube, 2] > task.rest + 0.1
  assert 0.25 < held.float().mean() < 0.75
  for _ in range(10):
    task.step(torch.tensor([[0.0, 0.0, 0.0, 0.0, -1.0]]).expand(64, 5))
  assert ((task.sim.xpos[:, task.cube, 2] > task.rest + 0.1) == held).all()
  task = build(8, start_held=1.0)
  task.reset()
  assert (task.sim.xpos[:, task.cube, 2] < task.rest + 1e-3).all(), "an evaluation has none"


def test_a_cube_below_the_table_ends_the_episode(tmp_path):
  task = build(robot=write(tmp_path, gripping(SLIDES)), cube_size=0.02)
  assert task.found.gripper.side == 0.02
  task.reset()
  task.sim.xpos[0, task.cube, 2] = task.top - 0.01
  assert task.terminated().tolist() == [True, False]


def test_a_gripper_that_is_missing_or_too_narrow_is_refused():
  with pytest.raises(
    ValueError, match=r"does not fit into its gripper, which opens to 8 cm: write env.cube_size=0\.048"
  ):
    build(cube_size=0.09)
