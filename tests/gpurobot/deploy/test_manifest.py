import dataclasses
import json

import pytest
import torch

import tasks
from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.deploy.manifest import describe
from gpurobot.learn.random import Random
from gpurobot.settings.algorithms import Recurrence
from gpurobot.settings.config import defaults
from physics.parity import MujocoSimulation
from tests.gpurobot import toy
from tests.gpurobot.policies import make
from tests.physics.robot.robots import rover


def facts(name, controls=None, policy=None, **settings):
  module = tasks.load(name)
  config = defaults(module)
  config = dataclasses.replace(config, task=name, env=dataclasses.replace(config.env, **settings))
  simulation = MujocoSimulation(module.Task.make_model(config.env), 1, module.Task.outputs)
  env = module.Task(config.env, 1, random=Random(0, 1), training=False, simulation=simulation)
  return json.loads(json.dumps(describe(config, env, Deployed(policy or make(), controls)), allow_nan=False))


def test_a_walking_robot_is_described():
  found = facts("quadruped", Controls(torch.zeros(12), 0.5 * torch.eye(12)))
  assert found["robot"] == "assets/quadruped/robot.xml"
  assert found["rate"] == {"control [Hz]": 50, "step [s]": 0.02, "physics step [s]": 0.005}
  blocks = {block["name"]: (block["start"], block["width"]) for block in found["observation"]["blocks"]}
  assert blocks["angular_velocity"] == (0, 3)
  assert blocks["action"] == (33, 12)
  assert found["joints"][0] == {"name": "root", "type": "free", "qpos": 0, "qvel": 0, "range": None}
  assert found["joints"][2] == {
    "name": "FR_thigh", "type": "hinge", "qpos": 8, "qvel": 7, "range": [-0.686, 4.501], "column": 1,
    "sign": 1, "zero": 0, "home": 0.9, "actuator": "FR_thigh", "kp": 35, "kd": 0.5, "torque_limit": 23.7,
    "speed_limit": None, "armature": 0.00448, "damping": 0.01, "friction_loss": 0.2,
  }  # fmt: skip
  assert found["actuators"][2] == {"name": "FR_calf", "joint": "FR_calf", "gear": 1, "delay [s]": 0}
  assert [action["actuator"] for action in found["control"]["controls"]] == found["actions"]["names"]
  assert found["control"]["gain"][1][:3] == [0, 0.5, 0]
  assert found["key_frames"]["home"]["qpos"][7:10] == [0, 0.9, -1.8]
  assert found["settings"]["action_scale"] == 0.5
  assert found["yours"] == ["the observation: its columns from the numbers of the sensors"]
  gyro = next(sensor for sensor in found["sensors"] if sensor["name"] == "angular_velocity")
  assert (gyro["columns"], gyro["unit"]) == (["x", "y", "z"], "rad/s")
  assert found["observation"]["columns"][10] == {
    "block": "angles", "sensor": "angles", "column": "FR_thigh", "scale": 1.0, "offset": 0.9,
  }  # fmt: skip


@pytest.mark.parametrize(
  "blocks",
  [
    lambda _, x: {**x, "gravity": x["gravity"].square()},
    lambda _, x: {**x, "command": x["command"].roll(1, 1) + x["command"]},
    lambda _, x: x if len(x["gravity"]) == 1 else {**x, "tilt": x["gravity"]},  # not as it is observed
  ],
  ids=["square", "sum", "other blocks"],
)
def test_columns_that_are_no_affine_map_of_one_number_are_left_to_the_caller(blocks, monkeypatch):
  monkeypatch.setattr(tasks.load("quadruped").Task, "policy_blocks", blocks)
  found = facts("quadruped")
  assert "columns" not in found["observation"]
  assert found["yours"][0].startswith("the observation as in tasks/shared/gait.py: Task.observe")


def test_what_can_be_commanded_is_told_with_its_range():
  assert facts("humanoid_amp", speed_max=1.0)["commands"] == [
    {"name": "forward", "range": [0.4, 1.0], "unit": "m/s"},
    {"name": "turn", "range": [-0.4, 0.4], "unit": "rad/s"},
  ]
  assert facts("cartpole")["commands"] == []


def test_motors_are_described_by_their_gears():
  found = facts("humanoid", Controls(torch.zeros(21), torch.eye(21)))
  knee = next(each for each in found["actuators"] if each["name"] == "right_knee")
  assert knee["gear"] > 1
  assert knee["gainprm"][0] == 1
  joint = next(each for each in found["joints"] if each.get("actuator") == "right_knee")
  assert (joint["kp"], joint["torque_limit"]) == (None, knee["gear"])


def test_a_wheel_follows_a_speed_and_its_angle_is_no_column(tmp_path):
  (tmp_path / "car.xml").write_text(rover())
  found = facts("walk", Controls(torch.zeros(4), 9.0 * torch.eye(4)), robot=str(tmp_path / "car.xml"))
  joint = next(each for each in found["joints"] if each.get("actuator") == "fl_roll")
  assert (joint["kp"], joint["kd"], joint["column"]) == (0, 1, None)
  assert found["control"]["gain"][0] == [9, 0, 0, 0]
  assert [column["block"] for column in found["observation"]["columns"]].count("speeds") == 4
  assert {sensor["name"] for sensor in found["sensors"]} == {
    "angular_velocity", "gravity", "command", "speeds", "action"
  }  # fmt: skip
  assert found["commands"][1]["range"] == [0, 0]


def test_what_controls_depend_on_is_left_to_the_caller():
  found = facts("ball_balance")
  assert found["control"]["offset"] is found["control"]["gain"] is None
  assert found["yours"][1] == (
    "controls from actions (they depend on more than the action), see tasks/ball_balance.py: Task.control "
    "and tasks/base.py: Task.simulate"
  )


def test_past_and_raw_observations_are_told_and_what_has_no_limit_is_null():
  assert facts("cartpole", policy=make(normalize_obs=False))["inside"] == [
    "the policy's means, without noise, clipped to [-1, 1]"
  ]
  assert facts("gym/Hopper-v5")["settings"]["height_high"] is None
  found = facts("cartpole", see_velocity=False, history_policy=3)
  assert found["observation"] == {
    "blocks": [{"name": "position", "start": 0, "width": 2}],
    "history, the oldest first": 3,
  }


def test_a_world_without_robots_is_described_by_its_widths():
  env = toy.Task(toy.Config(), 1, random=Random(0, 1))
  policy = make(choices=(2, 2, 2), recurrent=Recurrence.gru)
  found = describe(defaults(tasks.load(toy.__file__)), env, Deployed(policy, None))
  assert found["inputs"]["obs"]["width"] == 7
  assert found["inside"][1] == "the most likely discrete actions"
  assert found["yours"][1] == "the state: pass next_state back as state"
  assert "joints" not in found
