"""Humanoid AMP's numbers by hand."""

import math

import pytest
import torch

from gpurobot.learn.random import Random
from physics.parity import MujocoSimulation
from tasks import humanoid_amp
from tasks.core.errors import SettingError
from tasks.motion import transitions

ENVS = 32
BLOCKS = {"height": 1, "up": 3, "velocity": 3, "angular_velocity": 3, "angles": 21, "speeds": 21, "limbs": 12}


def build(num_envs=ENVS, simulation=None, **fields):
  config, random = humanoid_amp.Config(**fields), Random(0, num_envs)
  return humanoid_amp.Task(config, num_envs, random=random, training=False, simulation=simulation)


@pytest.fixture(scope="module")
def built():
  return build(style_tolerance=0.0)


@pytest.fixture
def task(built):
  built.reset()
  return built


def blocks(features):
  """Return the blocks of features [..., 64] by name."""
  return dict(zip(BLOCKS, features.split(list(BLOCKS.values()), -1), strict=True))


def test_the_second_state_of_a_pair_is_a_step_after_the_first(task):
  before, after = (blocks(part) for part in task.style_reference.unbind(1))
  middle = (before["speeds"] + after["speeds"]) / 2
  change = (after["angles"] - before["angles"]) / task.dt
  assert (change - middle).abs().mean() < 0.1
  assert middle.abs().mean() > 0.5


def test_the_reference_has_all_speeds_and_both_ways_to_turn(task):
  first = blocks(task.style_reference[:, 0])
  assert len(first["height"]) == transitions.SPEEDS * transitions.PHASES * humanoid_amp.COPIES
  speed, turn = first["velocity"][:, 0], first["angular_velocity"][:, 2]
  assert (speed.min().item(), speed.max().item()) == pytest.approx((0.4, 1.2), abs=0.02)
  assert (turn.min().item(), turn.max().item()) == pytest.approx((-0.4, 0.4))
  assert abs(torch.corrcoef(torch.stack([speed, turn]))[0, 1]) < 0.1
  torch.testing.assert_close(first["up"], torch.tensor([0.0, 0.0, 1.0]).expand_as(first["up"]))


def test_episodes_start_in_states_of_the_reference(task):
  style = task.reset()["style"]
  distance = (style.unsqueeze(1) - task.style_reference[:, 0]).abs().amax(2).amin(1)
  assert distance.max() < 1e-4
  _, turning = task.off_course()
  assert turning.abs().max() < 1e-6


def test_features_are_in_the_frame_of_the_torso(task):
  """Of a robot that stands elsewhere and looks elsewhere they are the same."""
  before = task.observe()["style"]
  turn = math.cos(0.6), math.sin(0.6)
  pose, rate = task.sim.qpos.clone(), task.sim.qvel.clone()
  task.sim.qpos[:, :2] += 3.0
  w, z = pose[:, 3], pose[:, 6]
  task.sim.qpos[:, 3], task.sim.qpos[:, 6] = turn[0] * w - turn[1] * z, turn[0] * z + turn[1] * w
  c, s = math.cos(1.2), math.sin(1.2)
  task.sim.qvel[:, 0], task.sim.qvel[:, 1] = c * rate[:, 0] - s * rate[:, 1], s * rate[:, 0] + c * rate[:, 1]
  task.sim.forward()
  after = task.observe()["style"]
  for name, block in before.items():
    torch.testing.assert_close(after[name], block, rtol=1e-4, atol=1e-4)


def test_clips_of_the_library_join_the_walks():
  """A run is faster than the walks, comes as often, and its command is its mean speed."""
  task = build(style_tolerance=0.0, motion="walks, run", speed_max=1.6)
  speed = task.starts.command[:, 0]
  running = speed > 1.3
  assert running.float().mean().item() == pytest.approx(0.5, abs=0.1)
  assert speed[running].unique().tolist() == pytest.approx([1.48], abs=0.05)
  assert speed[~running].max().item() == pytest.approx(transitions.FASTEST)
  task.reset()
  assert (task.command[:, 0] <= 1.6).all()


def test_weights_say_how_often_motions_come():
  task = build(style_tolerance=0.0, motion="run,walks", motion_weights=[3.0, 1.0], speed_max=1.6)
  running = task.starts.command[:, 0] > 1.3
  assert running.float().mean().item() == pytest.approx(0.75, abs=1e-3)
  assert len(task.style_reference) == humanoid_amp.COPIES * len(running)
  with pytest.raises(SettingError, match=r"env\.motion_weights has 1 numbers for 2 clips: write one for"):
    build(motion="run,walks", motion_weights=[3.0])


def test_the_discriminator_compares_the_chosen_features_alone(task):
  chosen = build(style_tolerance=0.0, style_features=["limbs", "up"])
  everything, parts = blocks(task.style_reference), chosen.style_reference
  torch.testing.assert_close(parts, torch.cat([everything["limbs"], everything["up"]], 2))
  seen = chosen.reset()
  assert (seen["style"].shape, seen["policy"].shape) == ((ENVS, 15), (ENVS, 75))
  with pytest.raises(ValueError, match=r"env\.style_features: 'arms' is none of height, up, velocity, "):
    build(style_features=["limbs", "arms"])


def test_tracking_rewards_fall_with_the_squared_errors(task):
  task.command.copy_(torch.tensor([0.8, 0.1]))
  task.sim.qpos[:, 3:7] = torch.tensor([math.cos(0.5), 0.0, 0.0, math.sin(0.5)])
  task.sim.qvel[:, :6] = torch.tensor([math.cos(1.0), math.sin(1.0), 0.0, 0.0, 0.0, 0.4])
  terms = {name: term[0].item() for name, term in task.reward().items()}
  assert terms["velocity"] == pytest.approx(math.exp(-(0.2**2) / 0.5**2), rel=1e-4)
  assert terms["turn"] == pytest.approx(math.exp(-(0.3**2) / 0.5**2), rel=1e-4)


def test_errors_count_once_a_command_has_settled(task):
  task.command.copy_(torch.tensor([5.0, 2.0]))
  task.command_age.fill_(0.0)
  for step in range(40):
    task.command_age.fill_(step * task.dt)
    task.update()
    assert (task.errors[0].max() > 3) == ((step + 1) * task.dt > 1.0)


def test_a_robot_that_lies_or_leans_has_fallen(task):
  task.sim.qpos[0, 2] = 0.89
  task.sim.qpos[1, 3:7] = torch.tensor([math.cos(0.5), math.sin(0.5), 0.0, 0.0])
  assert task.terminated()[:3].tolist() == [True, True, False]


def test_no_agent_observes_the_style(task):
  assert task.obs_dims == {"policy": 75}
  assert task.obs_names.keys() == {"policy", "style"}
  step = task.step(torch.zeros(ENVS, 21))
  assert step["obs", "style"].shape == step["final_obs", "style"].shape == (ENVS, 64)


def test_hands_and_feet_of_the_reference_are_where_mujoco_has_them(task):
  other = build(2, MujocoSimulation(task.model, 2, task.outputs), style_tolerance=0.0)
  torch.testing.assert_close(other.style_reference, task.style_reference, rtol=1e-4, atol=1e-4)
