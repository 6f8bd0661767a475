"""Walk: its default robot is our quadruped, and any other gets settings of its size."""

import functools

import pytest
import torch

from tasks import quadruped, walk
from tests.physics.robot.robots import BIPED, lowered, mjcf, urdf
from tests.tasks import in_mujoco

build = functools.partial(in_mujoco.build, walk)


def test_the_default_robot_is_our_quadruped_with_a_clock():
  task = build()
  assert (task.joints, task.feet, task.trunk) == (
    quadruped.Task.joints,
    quadruped.Task.feet,
    quadruped.Task.trunk,
  )
  assert task.obs_dims["policy"] == 45 + 2
  assert len(task.model.pairs) > len(build(self_collision=False).model.pairs)
  assert task.angle_scale.tolist() == [0.5] * 12
  assert task.config.command_forward == pytest.approx(1.0, rel=0.01)


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
  scale = dict(zip(task.joints, task.angle_scale.tolist(), strict=True))
  legs = {joint for leg in task.found.legs for joint in leg}
  assert max(scale[joint] for joint in task.quiet if joint not in legs) <= 0.25
  assert scale["left_knee"] > 0.25


def test_an_action_moves_a_leg_of_two_as_far_as_carrying_the_robot_takes():
  """A leg that stands carries all of the weight; a weak servo gives what it can; what is given counts."""
  robot = build(robot=str(BIPED)).found
  load = 9.81 * robot.mass * robot.leg_length  # [N m]
  for stiffness in (150.0, 50.0):
    task = build(robot=str(BIPED), stiffness=stiffness)
    scale = dict(zip(task.joints, task.angle_scale.tolist(), strict=True))
    effort = dict(zip(task.joints, robot.effort.tolist(), strict=True))
    for joint, share, least in (("left_hip_pitch", 0.35, 0.5), ("left_hip_roll", 0.2, 0.25)):
      expected = min(max(least, min(share * load / stiffness, 1.0)), 0.75 * effort[joint] / stiffness)
      assert scale[joint] == pytest.approx(expected), joint
  task = build(robot=str(BIPED), stiffness=50.0, action_scale=0.5, quiet_scale=0.25)
  assert task.angle_scale.max() <= 0.5
  assert task.angle_scale[task.joints.index("left_hip_roll")] == 0.25


def test_a_foot_that_should_swing_is_punished_for_the_weight_it_carries():
  task = build(robot=str(BIPED), start_angle=0.0, start_velocity=0.0)
  task.reset()
  task.command[:] = torch.tensor([[0.5], [0.0]])
  task.step(torch.zeros(2, task.num_actions))
  task.episode_steps.fill_(round(0.8 * task.config.step_seconds / task.dt))
  swinging = task.swings()
  assert swinging.sum(1).tolist() == [1, 0]  # nobody who is told to stand swings a foot
  force = task.sim.sensordata[:, task.touch]
  expected = (force[0] * swinging[0]).sum() / (9.81 * task.found.mass)
  assert 0.2 < expected < 0.8
  assert task.reward()["load"].tolist() == pytest.approx([expected.item(), 0.0])
  assert task.config.reward_load == -5.0
  assert build().config.reward_load == 0.0


@pytest.mark.parametrize("robot", [None, str(BIPED)])
def test_feet_hold_better_on_flat_ground_than_on_rough_ground(robot):
  flat, rough = (build(robot=robot, terrain=terrain) for terrain in ("flat", "rough"))
  assert flat.config.reward_slip < 3 * rough.config.reward_slip < 0
  assert flat.config.friction_min <= rough.config.friction_min


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


def test_a_robot_sinks_by_its_legs_where_its_origin_is_on_the_ground(tmp_path):
  (tmp_path / "dog.xml").write_text(lowered(mjcf()))
  task = build(robot=str(tmp_path / "dog.xml"))
  task.reset()
  assert not task.terminated().any()
  task.sim.qpos[0, 2] -= 0.45 * task.found.leg_length
  task.sim.qpos[1, 2] -= 0.55 * task.found.leg_length
  assert task.terminated().tolist() == [False, True]


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
