"""Ant's numbers by hand."""

import math

import numpy as np
import pytest
import torch

from physics.parity import MujocoSimulation

BLOCKS = {  # name: width, in the order of the observation
  "height": 1,
  "velocity": 3,
  "angular_velocity": 3,
  "yaw": 1,
  "roll": 1,
  "bearing": 1,
  "up": 1,
  "heading": 1,
  "angles": 8,
  "speeds": 8,
  "feet": 24,
  "action": 8,
}


@pytest.fixture
def task(make_task):
  task = make_task("ant", num_envs=2)
  task.reset()
  return task


def block(task, name):
  return task.observe()["policy"][name].reshape(2, -1)


def turn(task, axis, angle):
  """Turn both torsos about a world axis, at the origin."""
  task.sim.qpos[:, :3] = torch.tensor([0.0, 0.0, 0.5])
  quaternion = [math.cos(angle / 2), *(math.sin(angle / 2) * number for number in axis)]
  task.sim.qpos[:, 3:7] = torch.tensor(quaternion)


def test_the_robot_is_the_published_one(task):
  """The masses are those that MuJoCo computes for IsaacGymEnvs' nv_ant.xml (assets/ant/SOURCE.md)."""
  model = task.model
  expected = [0.0, 0.4838803] + [0.0391578, 0.0675922] * 4
  np.testing.assert_allclose(model.body_mass, expected, atol=1e-6)
  assert (model.actuator_gear[:, 0] == 15.0).all()
  assert set(model.dof_armature[6:]) == {0.01}
  assert set(model.dof_damping[6:]) == {0.1}
  np.testing.assert_allclose(np.rad2deg(model.jnt_range[1:]), [[-40, 40], [30, 100]] * 4)
  assert (task.dt, task.max_episode_steps) == (pytest.approx(1 / 60), 1000)
  assert {model.geom_names[pair.geom1] for pair in model.pairs} == {"floor"}


def test_each_foot_is_where_its_name_says(task):
  simulation = MujocoSimulation(task.model, 1)
  simulation.forward()
  for foot, (x, y) in {
    "front_left_foot": (0.4, 0.4),
    "back_left_foot": (-0.4, 0.4),
    "back_right_foot": (-0.4, -0.4),
    "front_right_foot": (0.4, -0.4),
  }.items():
    position = simulation.xpos[0, task.model.body_id(foot)]
    np.testing.assert_allclose(position, [x, y, 0.44], atol=1e-5)


def test_the_observation_has_the_published_blocks(task):
  blocks = task.observe()["policy"]
  assert {name: values[0].numel() for name, values in blocks.items()} == BLOCKS
  assert list(blocks) == list(BLOCKS)
  assert task.obs_dims == {"policy": 60}


def test_pose_and_motion_in_the_torso_frame(task):
  turn(task, (0.0, 0.0, 1.0), math.pi / 2)  # facing +y: the target is to the right
  task.sim.qvel[:, :6] = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
  torch.testing.assert_close(block(task, "height"), torch.full((2, 1), 0.5))
  torch.testing.assert_close(block(task, "velocity")[0], torch.tensor([2.0, -1.0, 3.0]))
  torch.testing.assert_close(block(task, "angular_velocity")[0], torch.tensor([4.0, 5.0, 6.0]))
  torch.testing.assert_close(block(task, "yaw")[0, 0].item(), math.pi / 2)
  torch.testing.assert_close(block(task, "bearing")[0, 0].item(), -math.pi / 2)
  torch.testing.assert_close(block(task, "up")[0, 0].item(), 1.0)
  assert abs(block(task, "heading")[0, 0].item()) < 1e-6


def test_roll_and_up_of_a_tilted_torso(task):
  turn(task, (1.0, 0.0, 0.0), 0.3)
  torch.testing.assert_close(block(task, "roll")[0, 0].item(), 0.3)
  torch.testing.assert_close(block(task, "up")[0, 0].item(), math.cos(0.3))
  torch.testing.assert_close(block(task, "heading")[0, 0].item(), 1.0)


def test_joints_are_scaled_to_their_ranges(task):
  hip, ankle = task.qpos_of("back_left_hip").start, task.qpos_of("back_left_ankle").start
  task.sim.qpos[:, hip], task.sim.qpos[:, ankle] = math.radians(20.0), math.radians(100.0)
  task.sim.qvel[:, task.qvel_of("back_left_hip").start] = 10.0
  torch.testing.assert_close(block(task, "angles")[0, 2:4], torch.tensor([0.5, 1.0]))
  torch.testing.assert_close(block(task, "speeds")[0, 2].item(), 2.0)


def test_feet_feel_the_floor_and_rare_peaks_are_cut(task):
  for _ in range(60):  # settle
    task.step(torch.zeros(2, 8))
  weight = 9.81 * task.model.body_mass.sum()
  force = block(task, "feet").view(2, 4, 6)[:, :, 5].sum(1) / 0.1
  assert (force > 0.5 * weight).all()
  task.sim.cfrc_ext.fill_(1e4)
  assert block(task, "feet").max() == 10.0


def test_reward_by_hand(task):
  turn(task, (0.0, 0.0, 1.0), math.acos(0.4))
  task.before.copy_(task.sim.qpos[:, :2] - torch.tensor([0.05, 0.0]))
  task.action.fill_(0.5)
  task.sim.qpos[:, task.angles] = (task.high + task.low) / 2
  task.sim.qpos[:, 8] = task.high[1]
  task.sim.qvel[:, task.speeds] = -2.0
  weighted = {name: task.reward_weights[name] * term[0].item() for name, term in task.reward().items()}
  expected = {
    "progress": 0.05 * 60,
    "alive": 0.5,
    "upright": 0.1,
    "heading": 0.5 * 0.4 / 0.8,
    "action": -0.005 * 8 * 0.25,
    "energy": -0.05 * 8 * abs(0.5 * 0.2 * -2.0),
    "joint_limit": -0.1,
    "fallen": 0.0,
  }
  assert weighted == pytest.approx(expected, rel=1e-3)


def test_a_fall_ends_the_episode_at_minus_two(task):
  task.sim.qpos[0, 2], task.sim.qpos[1, 2] = 0.309, 0.5
  total = sum(task.reward_weights[name] * term for name, term in task.reward().items())
  assert task.terminated().tolist() == [True, False]
  assert total[0].item() == -2.0
  assert total[1].item() > 0.0
