"""Humanoid mimic's numbers by hand."""

import math

import numpy as np
import pytest
import torch

from gpurobot.learn.random import Random
from physics.parity import MujocoSimulation
from tasks import humanoid_mimic

FRAMES = 30


def build(num_envs, simulation=None):
  config = humanoid_mimic.Config()
  random = Random(0, num_envs)
  return humanoid_mimic.Task(config, num_envs, random=random, training=False, simulation=simulation)


@pytest.fixture(scope="module")
def built():
  return build(32)


@pytest.fixture
def task(built):
  built.reset()
  return built


def follow(task, frame=7):
  """Put all robots into a frame of the reference."""
  task.count.fill_(frame)
  task.sim.qpos.copy_(task.at("pose", task.count))
  task.sim.qvel.copy_(task.at("rate", task.count))
  task.sim.forward()


def terms(task):
  return {name: term[0].item() for name, term in task.reward().items()}


def test_a_frame_of_the_reference_has_no_errors(task):
  follow(task)
  assert max(error.abs().max() for error in (*task.joint_errors(), task.root_error())) < 1e-6
  assert task.limb_errors().norm(dim=2).max() < 0.02  # the way of a limb in one physics step
  assert terms(task) == pytest.approx(dict.fromkeys(("pose", "speeds", "limbs", "root"), 1.0), abs=0.03)
  assert not task.terminated().any()


def test_rewards_fall_with_the_squared_errors(task):
  follow(task)
  task.sim.qpos[:, task.qpos_of("left_elbow")] += 0.3
  task.sim.qpos[:, 3:7] = torch.tensor([math.cos(0.1), 0.0, 0.0, math.sin(0.1)])  # the torso turns by 0.2
  task.sim.qvel[:, task.qvel_of("right_knee")] += 2.0
  task.sim.qvel[:, 3] = 1.0
  task.sim.qpos[:, 1] += 0.1
  found = terms(task)
  assert found["pose"] == pytest.approx(math.exp(-(0.3**2 + 0.2**2) / 0.7**2), rel=1e-2)
  assert found["speeds"] == pytest.approx(math.exp(-(2.0**2 + 1.0**2) / 3.0**2), rel=1e-4)
  assert found["root"] == pytest.approx(math.exp(-(0.1**2) / 0.3**2), rel=1e-4)


def test_a_hand_that_is_elsewhere_costs(task):
  follow(task)
  task.sim.qpos[:, task.qpos_of("left_elbow")] += 0.5
  task.sim.forward()
  moved = 2 * 0.312 * math.sin(0.25)  # on a circle about the elbow
  assert terms(task)["limbs"] == pytest.approx(math.exp(-(moved**2) / 0.16**2), rel=0.2)
  assert task.metrics()["limb_error"][0].item() == pytest.approx(moved / 4, rel=0.2)


def test_the_reference_moves_on_cycle_after_cycle(task):
  follow(task, frame=29)
  task.update()
  assert task.count[0].item() == FRAMES
  error = task.root_error()[0]
  assert error[0].item() == pytest.approx(-0.8 / FRAMES, rel=1e-4)


def test_it_is_lost_half_a_metre_away(task):
  follow(task)
  task.sim.qpos[0, 1] += 0.49
  task.sim.qpos[1, 2] -= 0.51
  assert task.terminated()[:3].tolist() == [False, True, False]
  assert task.success()[:3].tolist() == [True, False, True]


def test_episodes_start_anywhere_in_the_motion(task):
  assert task.joint_errors()[0].abs().max() <= 0.05 + 1e-6
  assert task.root_error().abs().max() < 1e-6
  assert len(task.count.unique()) > 10
  assert task.count.max() < FRAMES


def test_servos_are_told_the_reference_ahead_of_their_lag(task):
  follow(task, frame=3)
  task.action.zero_()
  task.action[:, task.joints.index("left_knee")] = 0.4
  task.control()
  walk = humanoid_mimic.Walk(task.model, 0.8, 1.0)
  middle = torch.tensor([3.5 / FRAMES], dtype=torch.float64)
  expected = walk.qpos(middle)[0, 7:] + 0.1 * walk.qvel(middle)[0, 6:]
  expected[task.joints.index("left_knee")] += 0.5 * 0.4
  torch.testing.assert_close(task.sim.ctrl[0].double(), expected, atol=1e-5, rtol=1e-5)


def test_servos_alone_track_the_joints_until_it_falls(task):
  for _ in range(12):
    step = task.step(torch.zeros(32, 21))
  assert step["metrics"]["joint_error"].mean() < 0.03
  fallen = torch.zeros(32, dtype=torch.bool)
  for _ in range(60):
    fallen |= task.step(torch.zeros(32, 21))["terminated"]
  assert fallen.all()


def test_a_mirrored_robot_half_a_cycle_later_moves_as_the_mirror_shows(task, actions):
  twin = build(32)
  (index, sign), (joints, signs) = task.mirror["policy"], task.mirror["action"]
  half = FRAMES // 2
  for action in actions(task, 10):
    for ours, theirs, base in (
      (task.sim.qpos, twin.sim.qpos, torch.tensor([1, -1, 1, 1, -1, 1, -1])),
      (task.sim.qvel, twin.sim.qvel, torch.tensor([1, -1, 1, -1, 1, -1])),
    ):
      theirs[:, : len(base)] = base * ours[:, : len(base)]
      theirs[:, len(base) :] = signs * ours[:, len(base) :][:, joints]
    twin.sim.qpos[:, 0] += 0.8 / 2
    twin.count.copy_(task.count + half)
    step, mirrored = task.step(0.3 * action), twin.step(0.3 * signs * action[:, joints])
    kept = ~step["terminated"]
    expected = (sign * step["final_obs", "policy"][:, index])[kept]
    torch.testing.assert_close(mirrored["final_obs", "policy"][kept], expected, rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(mirrored["reward"][kept], step["reward"][kept], rtol=2e-3, atol=2e-3)


def test_hands_and_feet_of_the_reference_are_where_mujoco_has_them(task):
  simulation = MujocoSimulation(task.model, 1, task.outputs)
  walk = humanoid_mimic.Walk(task.model, 0.8, 1.0)
  time = torch.tensor([11 / FRAMES - task.model.timestep], dtype=torch.float64)
  simulation.qpos.copy_(walk.qpos(time))
  simulation.forward()
  places = simulation.site_xpos[:, task.limbs] - simulation.site_xpos[:, task.torso]
  np.testing.assert_allclose(task.tables["limbs"][..., 11], places[0], atol=1e-5)
