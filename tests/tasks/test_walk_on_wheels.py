"""Walk on wheels: actions are speeds, wheels roll without slip, and no gait asks for steps."""

import pytest
import torch

from gpurobot.learn.random import Random
from physics.engines import OwnFileSimulation
from tasks import walk
from tasks.core.errors import SettingError
from tests.physics.robot.robots import TWO, mjcf, rover, wheel
from tests.tasks import in_mujoco

STILL = {"start_angle": 0.0, "start_velocity": 0.0}


@pytest.fixture
def build(tmp_path):
  """Return a function that builds the task for a robot's text."""

  def build(text, num_envs=2, **settings):
    file = tmp_path / f"{sum(map(ord, text))}.xml"
    file.write_text(text)
    return in_mujoco.build(walk, num_envs, robot=str(file), **{**STILL, **settings})

  return build


def test_an_action_is_the_speed_of_a_wheel_of_the_largest_commands_four_times(build):
  task = build(rover())
  config, one = task.config, task.found.wheels[0]
  most = (config.command_forward + config.command_turn * one.arm) / one.radius
  assert task.angle_scale.tolist() == pytest.approx([4 * most] * 4)
  task.reset()
  task.step(torch.full((2, 4), 0.25))
  assert task.sim.ctrl[0].tolist() == pytest.approx([most] * 4)


def test_a_wheels_speed_is_observed_and_its_angle_is_not(build):
  columns = {"angular_velocity": 3, "gravity": 3, "command": 3, "speeds": 4, "action": 4}
  assert build(rover()).observations.widths["policy"] == columns
  legs = build(mjcf(foot=wheel(), actuators=False))
  assert legs.observations.widths["policy"] == {**columns, "angles": 8, "speeds": 12, "action": 12}
  seen = legs.policy_blocks({"angles": torch.arange(12.0).expand(2, -1)})["angles"] + legs.stance[legs.bent]
  assert [legs.joints[int(index)] for index in seen[0]] == [n for n in legs.joints if "roll" not in n]


def test_a_wheel_that_rolls_does_not_slip_and_one_that_is_locked_does(build):
  task = build(rover())
  task.reset()
  for _ in range(100):
    step = task.step(torch.full((2, 4), 0.2))
  speed = 0.2 * float(task.angle_scale[0]) * task.found.wheels[0].radius
  assert speed > 0.3
  assert task.sim.qvel[0, 0] == pytest.approx(speed, rel=0.02)
  assert task.metrics()["foot_slip"][0] < 0.01 * speed
  assert task.reward()["slip"][0] < 1e-4
  assert not step["terminated"].any()
  assert step["obs", "policy"].isfinite().all()
  task.sim.qvel[:, 6:] = 0.0
  task.step(torch.zeros(2, 4))
  assert task.slip()[0].sum() > 0.1 * speed**2


def test_wheels_that_turn_against_each_other_turn_the_robot(build):
  task = build(rover())
  task.reset()
  for _ in range(50):
    task.step(torch.tensor([[-0.25, 0.25, -0.25, 0.25]] * 2))
  assert task.sim.qvel[0, 5] > 0.2


def test_no_wheel_steps_and_all_should_stand(build):
  task = build(mjcf(foot=wheel(), actuators=False))
  task.reset()
  task.command[:] = 0.5
  for _ in range(25):
    task.step(torch.zeros(2, 12))
    assert not task.swings().any()
  assert task.reward()["gait"].tolist() == [1.0, 1.0]
  task.sim.qpos[:, task.angles] += 1.0
  assert task.bend()[0, [task.joints.index(one.joint) for one in task.found.wheels]].tolist() == [0.0] * 4


def test_commands_go_ahead_and_turn_but_not_sideways(build):
  task = build(rover(), num_envs=64, command_standing=0.0)
  task.reset()
  assert (task.command[:, 1] == 0).all()
  assert (task.command[:, [0, 2]] != 0).all()
  assert build(rover(), terrain="rough", terrain_levels=2).config.command_sideways == 0
  with pytest.raises(SettingError, match=r"sideways=0\.3: its wheels only roll ahead; leave it"):
    build(rover(), command_sideways=0.3)


@pytest.mark.parametrize("text", [rover(), mjcf(foot=wheel(), actuators=False, corners=TWO)])
def test_left_and_right_wheels_are_exchanged(build, text):
  task = build(text)
  index, _ = task.mirror["action"]
  names = [task.joints[one] for one in index.tolist()]
  other = {"l": "r", "r": "l"}
  sides = [name.split("_") for name in task.joints]
  assert names == [f"{side[:-1]}{other[side[-1]]}_{part}" for side, part in sides]


def test_an_encoder_with_an_error_turns_no_wheel(build):
  task = build(mjcf(foot=wheel(), actuators=False), training=True, encoder_bias=0.1)
  task.reset()
  offsets = (task.targets() - task.stance)[0, 0]
  assert not offsets[task.jointed == 0].any()
  assert offsets[task.jointed == 1].all()


@pytest.mark.parametrize("drive", ['velocity kv="1"', 'motor ctrlrange="-9 9"'])
def test_a_rover_drives_in_its_own_file(build, drive):
  ours = build(rover(drive=drive))
  config = walk.Config(robot=ours.config.robot, **STILL)
  simulation = OwnFileSimulation(ours.model, 2, walk.Task.outputs, walk.Task.own_file(config))
  own = walk.Task(config, 2, random=Random(0, 2), training=False, simulation=simulation)
  for task in (ours, own):
    task.reset()
    for _ in range(50):
      task.step(torch.full((2, 4), 0.15))
  assert own.sim.qvel[0, 0] == pytest.approx(float(ours.sim.qvel[0, 0]), rel=0.02)
  assert own.sim.qvel[0, 0] > 0.2
