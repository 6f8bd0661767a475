"""Walking under commands, on the quadruped: numbers by hand, and what training varies."""

import math

import pytest
import torch

from gpurobot.learn.random import Random
from tasks import quadruped


@pytest.fixture(scope="module")
def built():
  return quadruped.Task(quadruped.Config(turning_width=0.4), 2, random=Random(0, 2), training=False)


@pytest.fixture
def task(built):
  """Return two environments at the start of an episode, built once: that takes seconds."""
  built.reset()
  return built


def turn(task, axis, angle):
  """Set the trunk's orientation."""
  half = angle / 2
  task.sim.qpos[:, 3:7] = torch.tensor([math.cos(half), *(math.sin(half) * x for x in axis)])


def test_the_policy_sees_motion_in_the_trunks_frame_and_joints_from_home(task):
  turn(task, (0.0, 0.0, 1.0), math.pi / 2)  # it faces along y
  task.sim.qvel[:, :6] = torch.tensor([0.1, 0.5, 0.2, 1.0, 2.0, 3.0])
  task.sim.qpos[:, 7:] = task.stance + 0.1
  task.command.copy_(torch.tensor([0.4, 0.3, -0.2]).expand(2, 3))
  groups = task.observe()
  seen = groups["policy"]
  torch.testing.assert_close(groups["critic"]["velocity"][0], torch.tensor([0.5, -0.1, 0.2]))
  assert seen["angular_velocity"][0].tolist() == [1.0, 2.0, 3.0]
  torch.testing.assert_close(seen["gravity"][0], torch.tensor([0.0, 0.0, -1.0]))
  torch.testing.assert_close(seen["angles"], torch.full((2, 12), 0.1))
  assert seen["command"].equal(task.command)
  turn(task, (1.0, 0.0, 0.0), math.pi / 6)  # its left side up: down is to its right
  gravity = torch.tensor([0.0, -math.sin(math.pi / 6), -math.cos(math.pi / 6)])
  torch.testing.assert_close(task.observe()["policy"]["gravity"][0], gravity)


def test_the_critic_sees_the_truth_and_what_training_varies(make_task):
  task = make_task("quadruped", num_envs=64, training=True, see_velocity=True)
  policy, critic = task.reset()["policy"], task.observe()["critic"]
  exact = torch.cat([block.reshape(64, -1) for block in task.observe()["policy"].values()], 1)
  assert 0.0 < (policy - exact).abs().amax(0)[:3].max() <= 0.1
  assert critic["velocity"].equal(task.observe()["policy"]["velocity"])
  assert critic["friction"].equal(task.sim.geom_friction[:, 0, 0])
  assert critic["mass"][:, 0].equal(task.sim.body_mass[:, 1])
  assert critic["delay"].equal(task.delay)


def test_a_foot_that_rolls_does_not_slide(task):
  task.sim.sensordata[:, task.touch] = 50.0
  task.sim.sensordata[:, task.turning] = torch.tensor(4 * [3.0, -5.0, 2.0])
  task.sim.sensordata[:, task.moving] = 0.02 * torch.tensor(4 * [-5.0, -3.0, 0.0])  # it turns about its sole
  assert task.slip().max() < 1e-12


def test_reward_by_hand(task):
  turn(task, (0.0, 1.0, 0.0), 0.2)
  down = torch.tensor([math.cos(0.2), 0.0, -math.sin(0.2)])  # the trunk's x axis in the world
  task.sim.qvel[:, :3] = 0.7 * down
  task.sim.qvel[:, 3:6] = torch.tensor([0.3, -0.4, 0.6])
  task.sim.qpos[:, 7:] = task.stance
  task.sim.qpos[:, 8] += 0.2
  task.sim.actuator_force.fill_(2.0)
  task.sim.cfrc_ext.zero_()
  task.sim.cfrc_ext[:, task.body_of("FR_thigh"), 5] = 20.0
  task.command.copy_(torch.tensor([1.0, 0.0, 0.1]).expand(2, 3))
  task.change.fill_(0.5)
  task.sim.sensordata[:, task.touch] = torch.tensor([50.0, 50.0, 0.0, 0.0])
  task.sim.sensordata[:, task.moving] = torch.tensor([0.3, 0.4, 9.0] + 9 * [0.2])  # two feet stand
  task.sim.sensordata[:, task.turning].zero_()
  expected = {
    "velocity": math.exp(-(0.3**2) / 0.25),
    "turn": math.exp(-(0.5**2) / 0.4**2),
    "vertical": 0.0,
    "rocking": 0.25,
    "tilt": math.sin(0.2) ** 2,
    "effort": 12 * 4.0,
    "change": 12 * 0.25,
    "pose": 0.04,
    "still": 0.0,
    "slip": 0.3**2 + 0.4**2 + 2 * 0.2**2,
    "collision": 1.0,
    "fallen": 0.0,
  }
  terms = task.reward()
  assert {name: terms[name][0].item() for name in expected} == pytest.approx(expected, abs=1e-6)
  task.command.zero_()
  assert task.reward()["still"][0].item() == pytest.approx(0.2)


def test_a_robot_falls_onto_its_trunk_or_over(task):
  assert task.terminated().tolist() == [False, False]
  task.sim.cfrc_ext[1, task.body_of("trunk"), 3] = 1.5
  assert task.terminated().tolist() == [False, True]
  turn(task, (1.0, 0.0, 0.0), math.radians(61))
  assert task.terminated().tolist() == [True, True]


def test_an_action_reaches_the_motors_after_its_delay(task):
  task.delay.copy_(torch.tensor([0.0, 0.01]))  # none, two physics steps
  task.sent.fill_(0.2)
  task.action.fill_(1.0)
  task.control()
  old, new = (task.stance + task.config.action_scale * action for action in (0.2, 1.0))
  targets = task.targets()
  torch.testing.assert_close(targets[0], new.expand(4, 12))
  torch.testing.assert_close(targets[1], torch.stack([old, old, new, new]))
  task.control()  # the same action again: nothing changes
  torch.testing.assert_close(task.targets()[1], new.expand(4, 12))


def test_a_delay_may_be_longer_than_a_control_step(make_task):
  task = make_task("quadruped", num_envs=2, action_delay=0.05)
  task.reset()
  task.delay[1] = 0.024
  seen = []
  for action in (1.0, 2.0, 3.0, 4.0):
    task.action.fill_(action)
    task.control()
    seen.append(task.arrived()[:, :, 0].tolist())
  # A control step is 4 physics steps of 5 ms: 50 ms are two control steps and two physics steps.
  assert seen[3][0] == [1.0, 1.0, 2.0, 2.0]
  assert [row[1] for row in seen] == [[0.0] * 4, [0.0, 1, 1, 1], [1.0, 2, 2, 2], [2.0, 3, 3, 3]]


def test_a_foots_time_in_the_air_is_told_when_it_lands(task):
  told = []
  for force in (50.0, 0.0, 0.0, 0.0, 50.0, 50.0):
    task.sim.sensordata[:, task.touch] = force
    task.update()
    told.append(task.flight[0, 0].item())
  assert told == pytest.approx([0, 0, 0, 0, 3 * 0.02, 0])


def test_errors_count_from_the_start_and_once_a_change_of_command_has_settled(task):
  task.update()
  assert task.errors.all()
  task.errors.zero_()
  task.command.copy_(torch.tensor([[1.0, 0.0, 0.5], [0.0, 0.0, 0.0]]))
  task.sim.qvel.zero_()
  task.command_age.fill_(0.5)
  task.update()
  assert not task.errors.any()
  task.command_age.fill_(1.0)
  task.update()
  torch.testing.assert_close(task.metrics()["velocity_error"], torch.tensor([1.0, 0.0]))
  torch.testing.assert_close(task.metrics()["yaw_error"], torch.tensor([0.5, 0.0]))
  task.command_age.zero_()
  task.command.zero_()
  task.update()
  assert task.errors[0, 0].item() == 1.0  # still those of the command before


def test_commands_change_within_an_episode(make_task):
  task = make_task("quadruped", num_envs=64, command_seconds=0.2)
  task.reset()
  first = task.command.clone()
  for _ in range(4):
    task.step(torch.zeros(64, 12))
  assert task.command.equal(first)
  for _ in range(8):
    task.step(torch.zeros(64, 12))
  changed = task.command.ne(first).any(1)
  assert changed.float().mean() > 0.9
  assert (task.command.abs() <= torch.tensor([1.0, 0.5, 1.0])).all()
  assert task.command_age[changed].max() < 0.2


def test_training_varies_ground_trunk_and_delay_and_evaluation_does_not(make_task):
  evaluation = make_task("quadruped", num_envs=64)
  evaluation.reset()
  mass, inertia = (evaluation.constant(getattr(evaluation.model, f"body_{x}")) for x in ("mass", "inertia"))
  assert evaluation.sim.geom_friction.eq(evaluation.constant(evaluation.model.geom_friction)).all()
  assert evaluation.sim.body_mass.eq(mass).all()
  assert evaluation.delay.eq(0.01).all()
  task = make_task("quadruped", num_envs=64, training=True)
  task.reset()
  sliding = task.sim.geom_friction[:, :, 0]
  assert sliding.eq(sliding[:, :1]).all()
  assert 0.3 <= sliding.min() < 0.4
  assert 1.15 < sliding.max() <= 1.25
  factor = task.sim.body_mass / mass
  assert factor[:, 2:].eq(1.0).all()
  assert 0.8 <= factor[:, 1].min() < 0.85
  assert 1.15 < factor[:, 1].max() <= 1.2
  torch.testing.assert_close(task.sim.body_inertia[:, 1], inertia[1] * factor[:, 1:2])
  assert 0.0 <= task.delay.min() < 0.002
  assert 0.018 < task.delay.max() <= 0.02


@pytest.mark.parametrize("training", [True, False])
def test_a_push_changes_the_trunks_horizontal_velocity_in_training_alone(make_task, training):
  still = {"start_angle": 0.0, "start_velocity": 0.0}
  task = make_task("quadruped", training=training, push_seconds=0.1, push_speed=2.0, **still)
  task.reset()
  change = task.push()["qvel"] - task.sim.qvel
  assert not change[:, 2:].any()
  assert 1.0 < change.abs().max() <= 2.0
  fastest = torch.zeros(8)
  for _ in range(10):
    task.step(torch.zeros(8, 12))
    fastest = torch.maximum(fastest, task.sim.qvel[:, :2].norm(dim=1))
  assert (fastest > 0.5).float().mean() == float(training)
