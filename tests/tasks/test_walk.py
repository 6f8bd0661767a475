"""Walk: its default robot is our quadruped, and any other gets settings of its size."""

import pytest
import torch

from gpurobot.learn.random import Random
from physics.parity import MujocoSimulation
from tasks import quadruped, walk
from tests.physics.robot.robots import BIPED, mjcf, urdf


def build(num_envs=2, *, training=False, **settings):
  """Return a task in MuJoCo C: no kernel has to be built."""
  config = walk.Config(**settings)
  simulation = MujocoSimulation(walk.Task.make_model(config), num_envs, walk.Task.outputs)
  random = Random(0, num_envs)
  return walk.Task(config, num_envs, random=random, training=training, simulation=simulation)


def test_the_default_robot_is_our_quadruped_with_a_clock():
  task = build()
  assert (task.joints, task.feet, task.trunk) == (
    quadruped.Task.joints,
    quadruped.Task.feet,
    quadruped.Task.trunk,
  )
  assert task.obs_dims["policy"] == 48 + 2
  assert task.angle_scale.tolist() == [0.5] * 12
  assert task.config.command_forward == pytest.approx(1.0, rel=0.01)


def test_it_stands_for_two_seconds_at_home():
  task = build(start_angle=0.0, start_velocity=0.0, command_standing=1.0)
  task.reset()
  for _ in range(100):
    step = task.step(torch.zeros(2, 12))
    assert not step["terminated"].any()
  assert task.contacts().all()
  assert task.lifted().abs().max() < 0.01
  assert step["reward_terms", "gait"].tolist() == [0.5, 0.5]
  assert (step["metrics", "velocity_error"] < 0.01).all()


@pytest.mark.parametrize("text", [mjcf(), urdf()], ids=["MJCF", "URDF"])
def test_a_dog_of_any_file_walks_by_a_trot(text, tmp_path):
  file = tmp_path / ("dog.urdf" if text.startswith("<robot") else "dog.xml")
  file.write_text(text)
  task = build(robot=str(file), start_angle=0.0, start_velocity=0.0)
  assert task.num_actions == 8
  task.reset()
  task.command[:] = 0.5
  task.episode_steps.fill_(round(0.8 * task.config.step_seconds / task.dt))
  assert task.swings()[0].tolist() == [True, False, False, True]
  step = task.step(torch.zeros(2, 8))
  assert not step["terminated"].any()
  assert step["obs", "policy"].isfinite().all()
  assert {*task.mirror} == {"policy", "action"}


def test_two_legs_have_the_settings_of_a_humanoid():
  task = build(robot=str(BIPED))
  assert task.config.command_forward == pytest.approx(0.8, rel=0.01)
  assert task.config.reward_alive == 0.2
  quiet = [task.joints.index(name) for name in task.quiet]
  assert task.angle_scale[quiet].max() <= 0.25
  assert task.angle_scale[task.joints.index("left_knee")] > 0.25


def test_an_action_asks_of_a_weak_servo_what_it_can_give(tmp_path):
  (tmp_path / "dog.xml").write_text(mjcf())
  task = build(robot=str(tmp_path / "dog.xml"), stiffness=100.0, action_scale=0.4)
  assert task.angle_scale.tolist() == pytest.approx([0.75 * 30.0 / 100.0] * 8)


def test_a_robot_that_sinks_has_fallen():
  task = build()
  task.reset()
  assert not task.terminated().any()
  task.sim.qpos[0, 2] = 0.45 * task.found.height
  assert task.terminated().tolist() == [True, False]


def test_a_robot_without_symmetry_is_not_mirrored(tmp_path):
  moved = mjcf().replace('name="fl_thigh" pos="0.2 0.1 0"', 'name="fl_thigh" pos="0.3 0.1 0"')
  (tmp_path / "dog.xml").write_text(moved.replace("fl_", "first_"))
  assert build(robot=str(tmp_path / "dog.xml")).mirror is None


def test_what_was_found_is_said_once_before_a_training(caplog):
  caplog.set_level("INFO")
  build(training=True)
  assert "4 legs, 12 joints, 13.1 kg, left and right mirrored" in caplog.text
  assert "commands up to 1 m/s forward, 0.5 m/s sideways, 1 rad/s; a step cycle of 0.5 s" in caplog.text
  caplog.clear()
  build()
  assert caplog.text == ""
