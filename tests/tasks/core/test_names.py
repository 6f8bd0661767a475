"""Names of a robot's parts, and the word that was meant."""

import dataclasses

import pytest
import torch

import physics
from tasks.core.names import Names, hint, settings

ROBOT = """
<mujoco>
  <worldbody>
    <body name="ball">
      <joint name="ball" type="ball"/>
      <geom type="sphere" size="0.1"/>
    </body>
    <body name="block">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0"/>
      <joint name="z" type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.1"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="x"/>
    <pid name="servo" joint="y" posrange="-1 1"/>
    <motor name="lift" joint="z"/>
  </actuator>
</mujoco>
"""


class Robot(Names):
  model = physics.load_model(ROBOT)
  device = torch.device("cpu")


def test_joints_are_columns_of_the_state():
  robot = Robot()
  assert robot.qpos_of("ball", "x") == slice(0, 5, 1)
  assert robot.qvel_of("ball") == slice(0, 3, 1)


@pytest.mark.parametrize("joints", [("ball",), ("x", "y", "z"), ("x", "z")])
def test_an_edit_in_place_arrives_whether_or_not_joints_are_neighbours(joints):
  robot = Robot()
  for columns, size in ((robot.qpos_of(*joints), robot.model.nq), (robot.qvel_of(*joints), robot.model.nv)):
    values = torch.zeros(2, size)
    part = values[:, columns]
    part += 1.0
    assert values[:, columns].equal(torch.ones_like(part))
    assert values.sum() == part.numel()


def test_columns_that_no_slice_has_are_refused():
  robot = Robot()
  advice = "not evenly spaced upwards: ask for them in parts, and join the results with torch.cat"
  with pytest.raises(ValueError, match=rf"z, x are the columns \[6, 4\] of qpos, {advice}"):
    robot.qpos_of("z", "x")
  with pytest.raises(ValueError, match=rf"ball, z are the columns \[0, 1, 2, 5\] of qvel, {advice}"):
    robot.qvel_of("ball", "z")
  with pytest.raises(ValueError, match=rf"lift, push are the columns \[3, 0\] of ctrl, {advice}"):
    robot.ctrl_of("lift", "push")


def test_joints_in_any_order_can_be_read_and_assigned():
  robot = Robot()
  qpos, qvel = robot.joints_of("z", "x")
  assert (qpos.tolist(), qvel.tolist()) == ([6, 4], [5, 3])
  values = torch.zeros(2, robot.model.nq)
  values[:, qpos] += torch.tensor([1.0, 2.0])
  assert values[0].tolist() == [0, 0, 0, 0, 2, 0, 1]
  assert robot.joints_of("ball", "x") == (slice(0, 5, 1), slice(0, 4, 1))


def test_evenly_spaced_parts_are_slices_and_others_tensors():
  robot = Robot()
  assert robot.body_of("block") == slice(2, 3, 1)
  assert robot.body_of("block", "ball").tolist() == [2, 1]
  assert torch.zeros(4, robot.model.nbody, 3)[:, robot.body_of("block")].shape == (4, 1, 3)


def test_an_actuator_may_have_several_controls():
  robot = Robot()
  assert [robot.ctrl_of(name) for name in ("push", "servo", "lift")] == [
    slice(0, 1, 1),
    slice(1, 3, 1),
    slice(3, 4, 1),
  ]


def test_an_unknown_part_is_answered_with_the_nearest():
  with pytest.raises(KeyError, match="ball"):
    Robot().qpos_of("bal")


def test_the_hint_is_named():
  assert hint("sped", ["speed", "effort"]) == "nearest: 'speed'"
  assert hint("sped", []) == "there is none"


def test_settings_of_a_prefix_lose_it():
  @dataclasses.dataclass
  class Config:
    reward_speed: float = 1.0
    noise_speed: float = 2.0
    noise_x_y: float = 3.0

  assert settings(Config(), "noise_") == {"speed": 2.0, "x_y": 3.0}
