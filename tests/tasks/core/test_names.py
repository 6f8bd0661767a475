"""Names of a robot's parts, and the word that was meant."""

import dataclasses

import pytest
import torch

import physics
from tasks.core.names import Names, nearest_word, settings

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


def test_evenly_spaced_parts_are_slices_and_others_lists():
  robot = Robot()
  assert robot.qvel_of("x", "z") == slice(3, 6, 2)
  assert robot.qpos_of("z", "x").tolist() == [6, 4]
  assert robot.body_of("block") == slice(2, 3, 1)


def test_an_actuator_may_have_several_controls():
  robot = Robot()
  assert [robot.ctrl_of(name) for name in ("push", "servo", "lift")] == [
    slice(0, 1, 1),
    slice(1, 3, 1),
    slice(3, 4, 1),
  ]
  assert robot.ctrl_of("lift", "push").tolist() == [3, 0]


def test_an_unknown_part_is_answered_with_the_nearest():
  with pytest.raises(KeyError, match="ball"):
    Robot().qpos_of("bal")


def test_the_nearest_word_is_named():
  assert nearest_word("sped", ["speed", "effort"]) == "nearest: 'speed'"
  assert nearest_word("sped", []) == "there is none"


def test_settings_of_a_prefix_lose_it():
  @dataclasses.dataclass
  class Config:
    reward_speed: float = 1.0
    noise_speed: float = 2.0
    noise_x_y: float = 3.0

  assert settings(Config(), "noise_") == {"speed": 2.0, "x_y": 3.0}
