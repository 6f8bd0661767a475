"""Reach: its default arm is our own, any other gets weights of its size, and a script reaches the targets."""

import functools

import pytest
import torch

from tasks import reach
from tasks.shared import arm as stated
from tasks.shared import quat
from tests.physics.robot.arms import mjcf, urdf, write
from tests.tasks import in_mujoco

SLIDER = mjcf().replace(
  '<joint name="elbow" axis="0 1 0"\n      range="-10 150"',
  '<joint name="elbow" type="slide" axis="0 0 1"\n      range="-0.1 0.3"',
)


build = functools.partial(in_mujoco.build, reach)


def put_target(task, offset):
  """Put the targets at an offset from the tip."""
  task.sim.forward()
  task.target.copy_(task.sim.site_xpos[:, task.tip] + torch.tensor(offset))
  task.update()


def test_the_default_arm_is_ours():
  task = build()
  assert task.action_names() == list(stated.JOINTS)
  assert task.config.reward_distance == pytest.approx(-1.0, rel=0.01)
  assert task.obs_dims["policy"] == 4 * 7 + 2 * 3


def test_an_action_of_zero_holds_the_arm_still(tmp_path):
  task = build(robot=write(tmp_path, mjcf()), start_angle=0.0)
  task.reset()
  before = task.sim.site_xpos[:, task.tip].clone()
  for _ in range(50):
    step = task.step(torch.zeros(2, 3))
  assert (task.sim.site_xpos[:, task.tip] - before).norm(dim=1).max() < 3e-3
  assert step["obs", "policy"].isfinite().all()
  assert not step["terminated"].any()


@pytest.mark.parametrize("text", [urdf(), SLIDER], ids=["URDF", "slide joint"])
def test_the_jacobian_is_how_the_tip_moves_and_turns(text, tmp_path):
  task = build(1, robot=write(tmp_path, text), orientation=True)
  task.reset()
  steps = 1e-2 * torch.eye(3)
  for joint in range(3):
    places, turns = [], []
    for change in (-steps[joint], steps[joint], 0.0):
      task.sim.qpos[0, :3] = task.home[:3] + change
      task.sim.forward()
      places.append(task.sim.site_xpos[0, task.tip].clone())
      turns.append(task.sim.site_xmat[0, task.tip].unflatten(0, (3, 3)).float())
    linear, angular = (places[1] - places[0]) / 2e-2, quat.turn_between(*turns[:2]) / 2e-2
    torch.testing.assert_close(task.jacobian.linear()[0, joint], linear, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(task.jacobian.angular()[0, joint].float(), angular, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("text", [urdf(), SLIDER], ids=["URDF", "slide joint"])
def test_a_script_that_follows_the_jacobian_reaches(text, tmp_path):
  task = build(32, robot=write(tmp_path, text))
  task.reset()
  for _ in range(task.config.episode_steps - 1):
    jacobian = task.jacobian.linear().mT
    damped = jacobian @ jacobian.mT + 1e-3 * torch.eye(3)
    change = jacobian.mT @ torch.linalg.solve(damped, task.offset().unsqueeze(2))
    step = task.step(change.squeeze(2) / (10 * task.dt * task.speed))
  assert step["metrics", "there"].mean() > 0.7
  step = task.step(torch.zeros(32, 3))
  assert step["success"].float().mean() > 0.7


def test_rewards_by_hand(tmp_path):
  task = build(robot=write(tmp_path, mjcf()), precise_distance=0.2)
  task.reset()
  put_target(task, (0.06, 0.0, -0.08))
  task.action.fill_(0.5)
  terms = {name: term[0].item() for name, term in task.reward().items()}
  expected = {"distance": 0.1, "precise": 1 - torch.tensor(0.5).tanh().item(), "action": 0.25}
  expected |= {"angle": 0.0, "aligned": 0.0}
  assert terms == pytest.approx(expected, rel=1e-4)


def turned(task, angle, axis=(0.0, 0.0, 1.0)):
  """Put the targets at the tip, turned by an angle [rad] about an axis of the world."""
  task.sim.forward()
  turn = quat.to_matrix(quat.from_rotation_vector(angle * torch.tensor(axis)))
  task.target_turn.copy_(turn @ task.sim.site_xmat[:, task.tip].unflatten(1, (3, 3)).float())
  put_target(task, (0.0, 0.0, 0.0))


def test_with_an_orientation_rewards_by_hand(tmp_path):
  task = build(robot=write(tmp_path, mjcf()), orientation=True, precise_angle=0.5)
  task.reset()
  turned(task, -0.25, (0.0, 0.6, 0.8))
  terms = {name: term[0].item() for name, term in task.reward().items()}
  assert terms["angle"] == pytest.approx(0.25, rel=1e-4)
  assert terms["aligned"] == pytest.approx(1 - torch.tensor(0.5).tanh().item(), rel=1e-4)
  torch.testing.assert_close(task.turn()[0].float(), torch.tensor([0.0, -0.15, -0.2]), atol=1e-5, rtol=1e-4)


def test_the_orientation_counts_for_a_success(tmp_path):
  task = build(robot=write(tmp_path, mjcf()), orientation=True, success_seconds=0.1)
  task.reset()
  for angle, expected in ((0.09, False), (0.09, False), (-0.09, True), (0.11, False), (0.09, False)):
    turned(task, angle)
    assert task.success().tolist() == [expected] * 2
  assert task.metrics()["angle"].tolist() == pytest.approx([0.09] * 2, rel=1e-3)
  assert "angle" not in build(robot=write(tmp_path, mjcf())).metrics()


def test_targets_are_places_with_the_orientation_that_the_tip_has_there():
  task = build(64, orientation=True)
  task.reset()
  task.step(torch.zeros(64, 7))
  found = task.found
  assert found.turns.shape == (len(found.targets), 3, 3)
  identity = torch.eye(3).expand(64, 3, 3)
  torch.testing.assert_close(task.target_turn.mT @ task.target_turn, identity, atol=1e-5, rtol=0.0)
  assert (task.angle > 0.3).any()
  assert task.obs_dims["policy"] == 4 * 7 + 2 * 3 + 3 + 7


def test_a_script_brings_place_and_orientation_at_once():
  task = build(32, orientation=True, start_angle=0.3, episode_steps=200)
  task.reset()
  for _ in range(task.config.episode_steps - 1):
    jacobian = torch.cat([task.jacobian.linear(), task.jacobian.angular()], 2).mT
    error = torch.cat([task.offset(), task.turn()], 1)
    damped = jacobian @ jacobian.mT + 1e-2 * torch.eye(6)
    change = jacobian.mT @ torch.linalg.solve(damped, error.unsqueeze(2))
    step = task.step(change.squeeze(2) / (10 * task.dt * task.speed))
  assert step["metrics", "there"].mean() > 0.5


def test_weights_and_widths_follow_the_reach(tmp_path):
  task = build(robot=write(tmp_path, mjcf()))
  scale = task.found.reach / reach.OURS.length
  assert task.config.reward_distance == pytest.approx(-1.0 / scale)
  assert task.config.precise_distance == pytest.approx(0.1 * scale)
  assert task.config.success_distance == 0.02
  assert task.config.joint_speed == reach.Config().joint_speed


def test_success_is_to_stay_within_two_centimetres(tmp_path):
  task = build(robot=write(tmp_path, mjcf()), success_seconds=0.1)
  task.reset()
  for offset, expected in ((0.019, False), (0.019, False), (0.019, True), (0.021, False), (0.019, False)):
    put_target(task, (0.0, 0.0, offset))
    assert task.success().tolist() == [expected] * 2


def test_the_mean_of_a_metric_is_the_last_distance_of_an_episode(tmp_path):
  task = build(robot=write(tmp_path, mjcf()), episode_steps=5)
  task.reset()
  steps = [task.step(torch.zeros(2, 3))["metrics"] for _ in range(5)]
  mean = torch.stack([step["final_distance"] for step in steps]).mean(0)
  torch.testing.assert_close(mean, steps[-1]["distance"])


def test_targets_of_servos_stay_within_limits_and_near_the_joints(tmp_path):
  task = build(robot=write(tmp_path, mjcf()))
  task.reset()
  for _ in range(60):
    task.step(torch.ones(2, 3))
    ahead = task.aim - task.pull - task.sim.qpos[:, task.columns]
    assert ahead.abs().max() < (task.config.lead + 2 * task.dt) * task.config.joint_speed
  assert (task.sim.qpos[:, task.columns] < task.high + 0.02).all()
  assert (task.aim <= task.high).all()


def test_targets_are_drawn_from_a_box(tmp_path):
  low, high = [0.2, -0.2, 0.2], [0.5, 0.2, 0.6]
  task = build(256, robot=write(tmp_path, mjcf()), target_low=low, target_high=high)
  task.reset()
  assert ((task.target > torch.tensor(low)) & (task.target < torch.tensor(high))).all()
  assert len(task.target.unique(dim=0)) > 20


def test_what_was_found_is_said_once_before_a_training(caplog, tmp_path):
  caplog.set_level("INFO")
  build(training=True, robot=write(tmp_path, mjcf()))
  assert "an arm of 3 joints, 6.84 kg, reach 0." in caplog.text
  assert "tip site 'tool_site'; home found; targets in x -0." in caplog.text
  assert "held at home: left, right" in caplog.text
  caplog.clear()
  build(robot=write(tmp_path, mjcf()))
  assert caplog.text == ""


@pytest.mark.parametrize(
  ("settings", "message"),
  [
    ({"target_low": [0.1, 0.2]}, "env.target_low has 2 numbers: write x, y and z"),
    ({"target_low": [5.0, 0.0, 0.0]}, "nothing between env.target_low and env.target_high is reached"),
  ],
)
def test_a_box_that_has_no_targets_is_refused(settings, message, tmp_path):
  with pytest.raises(ValueError, match=message) as caught:
    build(robot=write(tmp_path, mjcf()), **settings)
  assert "\n" not in str(caught.value)
