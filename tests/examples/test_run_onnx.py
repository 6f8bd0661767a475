import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

import tasks
from examples import run_onnx
from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.deploy.exported import CONTROLLER, Exported, write_controller
from gpurobot.deploy.from_sensors import FromSensors
from gpurobot.deploy.manifest import describe
from gpurobot.learn.random import Random
from gpurobot.settings.config import defaults
from physics.parity import MujocoSimulation
from tests.gpurobot.policies import make

STEPS = 6  # later, rounding of 1e-7 has grown to be seen
QUIET = {"start_angle": 0.0, "start_velocity": 0.0, "action_delay": 0.0, "command_seconds": 1000.0}


HIDDEN = {"see_velocity": False, "history_policy": 3}


def exported(name, folder, settings):
  """Export an untrained policy, which sees the true state; return its task and its robot's file."""
  module = tasks.load(name)
  config = defaults(module)
  config = dataclasses.replace(config, env=dataclasses.replace(config.env, **QUIET, **settings))
  simulation = MujocoSimulation(module.Task.make_model(config.env), 1, module.Task.outputs)
  env = module.Task(config.env, 1, random=Random(0, 1), training=False, simulation=simulation)
  policy = make(env.obs_dims, env.num_actions)
  deployed = Deployed(policy, Controls(env.stance, env.angle_scale.diag()))
  facts = describe(config, env, deployed)
  write_controller(FromSensors(deployed, facts), facts, folder)
  return env, str(module.Task.robot)


@pytest.mark.parametrize(("name", "settings"), [("quadruped", {}), ("biped", HIDDEN)])
def test_a_robot_walks_in_plain_mujoco_as_in_its_task(name, settings, tmp_path):
  env, robot = exported(name, tmp_path, settings)
  found, _ = run_onnx.walk(str(tmp_path / CONTROLLER[0]), robot, STEPS * env.dt - 1e-9)
  policy, restart = Exported(tmp_path / CONTROLLER[1], 1), torch.zeros(1, dtype=torch.bool)
  env.reset()
  env.command.copy_(torch.from_numpy(run_onnx.COMMAND))
  obs, wanted = env.observations.restart(env.observe(), ~restart), []
  for _ in range(STEPS):
    wanted.append(obs["policy"][0, -found.shape[1] :].numpy())
    obs = env.step(policy({**env.measure(), **obs}, restart))["obs"]
  actions = [block == "action" for block in env.obs_names["policy"][: found.shape[1]]]
  assert np.ptp(found[:, actions]) > 1
  np.testing.assert_allclose(found, wanted, atol=1e-3)


def test_another_robot_is_refused(tmp_path):
  env, robot = exported("quadruped", tmp_path, {})
  text = (
    Path(robot).read_text().replace('name="FR_hip"', 'name="hip"').replace('joint="FR_hip"', 'joint="hip"')
  )
  (tmp_path / "other.xml").write_text(text)
  with pytest.raises(SystemExit, match=r"has the joints .*'hip', .* not those of the policy"):
    run_onnx.walk(str(tmp_path / CONTROLLER[0]), str(tmp_path / "other.xml"), env.dt)
