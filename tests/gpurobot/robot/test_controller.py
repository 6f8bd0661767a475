"""The controller observes and commands as the task does."""

import re

import numpy as np
import pytest
import torch

from gpurobot.robot.controller import Controller
from gpurobot.robot.interface import State
from gpurobot.settings.config import ConfigError
from tests.gpurobot.robot.exports import Still, change, write_export


def message(env, joints):
  """Return the message of the robot of an environment, with its joints in another order than the policy's."""
  model, qpos, qvel = env.model, env.sim.qpos[0].numpy(), env.sim.qvel[0].numpy()
  ids = [model.joint_names.index(name) for name in joints]
  angles, speeds = qpos[model.jnt_qposadr[ids]], qvel[model.jnt_dofadr[ids]]
  return State(0.0, 0.0, angles, speeds, 0 * angles, qpos[3:7], qvel[3:6])


FILTERED = {"action_lowpass": 8.0, "action_rate": 4.0}


@pytest.mark.parametrize(("name", "settings"), [("quadruped", FILTERED), ("biped", {})])
def test_it_observes_and_commands_as_the_task_does(name, settings, tmp_path):
  env = write_export(tmp_path, name, weights=1.0, history_policy=2, **settings)
  controller = Controller(tmp_path)
  joints = sorted(controller.servos.joints)
  places = controller.robot_columns(joints)
  obs = env.reset()
  for _ in range(4):
    command = env.command[0].double().numpy()
    tick = controller.step(message(env, joints), places, command)
    np.testing.assert_allclose(tick.obs, obs["policy"][0], atol=1e-5)
    obs = env.step(torch.from_numpy(tick.action[None]).float())["obs"]
    np.testing.assert_allclose(tick.ctrl, env.sim.ctrl[0], atol=1e-5)
  assert list(tick.sensors) == list(controller.columns)


def test_the_servos_are_those_of_the_manifest(standing):
  servos = Controller(standing).servos
  assert servos.joints[:3] == ("FR_hip", "FR_thigh", "FR_calf")
  assert servos.home[:3].tolist() == [0, 0.9, -1.8]
  assert (servos.kp[0], servos.kd[0], servos.torque[2]) == (35, 0.5, 35.55)
  assert (servos.low[1], servos.high[1]) == pytest.approx((-0.686, 4.501))


def test_gravity_is_that_of_the_attitude():
  rolled = np.array([np.cos(0.1), np.sin(0.1), 0, 0])  # by 0.2 rad about x: the left side rises
  state = State(0, 0, *np.zeros((3, 1)), rolled, np.zeros(3))
  np.testing.assert_allclose(state.gravity, [0, -np.sin(0.2), -np.cos(0.2)], atol=1e-12)


def _image(facts):
  facts["inputs"]["view"] = {"shape": [8, 8, 3], "type": "uint8"}


MISTAKES = {
  "env.see_velocity=false": lambda facts: facts["sensors"][0].update(name="velocity"),
  "'scan': train the policy with env.blind=true": lambda facts: facts["sensors"][0].update(name="scan"),
  "declares no sensors": lambda facts: facts.update(sensors=[]),
  "no image 'view'": _image,
  "depend on more than the action": lambda facts: facts["control"].update(offset=None, gain=None),
  "'FR_hip' is no servo": lambda facts: facts["joints"][1].pop("actuator"),
  "'FR_hip' follows a speed, which the runner cannot send": lambda facts: facts["joints"][1].update(kp=0),
  "no key frame 'home'": lambda facts: facts.update(key_frames={}),
  "fixed to the world": lambda facts: facts["joints"].pop(0),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_policy_that_cannot_be_run_is_refused(text, standing, tmp_path):
  change(standing, tmp_path, MISTAKES[text])
  with pytest.raises(ConfigError, match=re.escape(text)):
    Controller(tmp_path)


def test_a_robot_without_a_joint_is_refused(standing):
  robot = Still(["left_knee"], np.zeros(1))
  with pytest.raises(ConfigError, match="with the joint 'FR_hip', this one has left_knee"):
    Controller(standing).robot_columns(robot.joints)
