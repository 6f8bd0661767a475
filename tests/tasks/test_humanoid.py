"""Humanoid's numbers by hand."""

import math

import pytest
import torch

from gpurobot.learn.random import Random
from tasks import humanoid

BLOCKS = {  # name: width, in the order of the observation
  "height": 1,
  "velocity": 3,
  "angular_velocity": 3,
  "yaw": 1,
  "roll": 1,
  "bearing": 1,
  "up": 1,
  "heading": 1,
  "angles": 21,
  "speeds": 21,
  "feet": 12,
  "action": 21,
  "torques": 21,
}


@pytest.fixture(scope="module")
def built():
  return humanoid.Task(humanoid.Config(), 2, random=Random(0, 2), training=False)


@pytest.fixture
def task(built):
  built.reset()
  return built


def block(task, name):
  return task.observe()["policy"][name].reshape(2, -1)


def pose(task, **angles):
  """Put both torsos upright in the air, all joints in the middle of their ranges but those named."""
  task.sim.qpos[:, :7] = torch.tensor([0.0, 0.0, 1.3, 1.0, 0.0, 0.0, 0.0])
  task.sim.qpos[:, 7:] = task.middle
  task.sim.qvel.zero_()
  for name, angle in angles.items():
    task.sim.qpos[:, task.qpos_of(name)] = math.radians(angle)


def test_the_observation_has_the_published_blocks(task):
  blocks = task.observe()["policy"]
  assert {name: values[0].numel() for name, values in blocks.items()} == BLOCKS
  assert task.obs_dims == {"policy": 108}
  assert (task.dt, task.max_episode_steps, task.num_actions) == (pytest.approx(1 / 60), 1000, 21)


def test_motors_have_the_published_torques(task):
  torque = dict(zip(task.joints, task.model.actuator_gear[:, 0], strict=True))
  assert torque["left_hip_y"] == 135.0
  assert torque["right_ankle_x"] == 22.5
  assert sum(torque.values()) == 3 * 67.5 + 2 * (45 + 45 + 135 + 90 + 22.5 + 22.5) + 2 * (67.5 + 67.5 + 45)
  assert task.share.max() == 1.0


def test_joints_and_motion_are_scaled_as_published(task):
  pose(task, left_knee=160.0, right_hip_y=-120.0)
  task.sim.qvel[:, 3:6] = torch.tensor([1.0, 2.0, 4.0])
  task.sim.qvel[:, task.qvel_of("left_knee")] = 3.0
  angles = dict(zip(task.joints, block(task, "angles")[0].tolist(), strict=True))
  assert (angles["left_knee"], angles["right_hip_y"], angles["left_elbow"]) == pytest.approx((1.0, -1.0, 0.0))
  torch.testing.assert_close(block(task, "angular_velocity")[0], torch.tensor([0.25, 0.5, 1.0]))
  assert block(task, "speeds")[0, task.joints.index("left_knee")].item() == pytest.approx(0.3)


def test_reward_by_hand(task):
  pose(task, left_knee=160.0)
  task.before.copy_(task.sim.qpos[:, :2] - torch.tensor([0.05, 0.0]))
  task.action.fill_(0.5)
  task.sim.qvel[:, task.qvel_of("left_hip_y")] = -4.0
  task.sim.qvel[:, task.qvel_of("left_ankle_y")] = 6.0
  weighted = {name: task.reward_weights[name] * term[0].item() for name, term in task.reward().items()}
  expected = {
    "progress": 0.05 * 60,
    "alive": 2.0,
    "upright": 0.1,
    "heading": 0.5,
    "action": -0.01 * 21 * 0.25,
    "energy": -0.05 * 0.5 * (0.1 * 4.0 * 1.0 + 0.1 * 6.0 * 22.5 / 135),
    "joint_limit": -0.25 * 90 / 135,
    "fallen": 0.0,
  }
  assert weighted == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("fraction", "expected"), [(0.97, 0.0), (0.99, 0.5), (-1.0, 1.0), (1.2, 2.0)])
def test_a_limit_costs_from_98_percent_on(task, fraction, expected):
  strongest = task.joints.index("right_hip_y")
  fractions = torch.zeros(2, 21)
  fractions[:, strongest] = fraction
  assert task.at_limits(fractions).tolist() == pytest.approx([expected] * 2, abs=1e-4)


def test_a_fall_ends_the_episode_at_minus_one(task):
  pose(task)
  task.sim.qpos[0, 2] = 0.79
  total = sum(task.reward_weights[name] * term for name, term in task.reward().items())
  assert task.terminated().tolist() == [True, False]
  assert total[0].item() == -1.0
  assert total[1].item() > 0.0


def test_joints_feel_their_limits(task):
  pose(task, left_elbow=55.0)
  task.sim.forward()
  torques = dict(zip(task.joints, block(task, "torques")[0].tolist(), strict=True))
  assert torques["left_elbow"] < -0.01
  assert torques["right_elbow"] == 0.0
