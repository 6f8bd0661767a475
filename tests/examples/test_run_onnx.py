import dataclasses

import numpy as np
import pytest
import torch

import tasks
from examples import run_onnx
from gpurobot.deploy.deployed import Controls, Deployed
from gpurobot.deploy.exported import NAMES, Exported, write
from gpurobot.deploy.manifest import describe
from gpurobot.learn.random import Random
from gpurobot.settings.config import defaults
from physics.parity import MujocoSimulation
from tests.gpurobot.policies import make

STEPS = 6  # later, rounding of 1e-7 has grown to be seen
QUIET = {"start_angle": 0.0, "start_velocity": 0.0, "action_delay": 0.0, "command_seconds": 1000.0}


def test_a_robot_walks_in_plain_mujoco_as_in_its_task(tmp_path):
  module = tasks.load("quadruped")
  config = defaults(module)
  config = dataclasses.replace(config, env=dataclasses.replace(config.env, **QUIET))
  simulation = MujocoSimulation(module.Task.make_model(config.env), 1, module.Task.outputs)
  env = module.Task(config.env, 1, random=Random(0, 1), training=False, simulation=simulation)
  policy = make(env.obs_dims, env.num_actions)
  deployed = Deployed(policy, Controls(env.stance, env.angle_scale.diag()))
  write(deployed, describe(config, env, deployed), tmp_path)
  found = run_onnx.walk(str(tmp_path / NAMES[0]), str(module.Task.robot), STEPS * env.dt - 1e-9)

  exported, restart = Exported(tmp_path / NAMES[0], 1), torch.zeros(1, dtype=torch.bool)
  env.reset()
  env.command.copy_(torch.from_numpy(run_onnx.COMMAND))
  obs, wanted = env.observations.restart(env.observe(), ~restart), []
  for _ in range(STEPS):
    wanted.append(obs["policy"][0].numpy())
    obs = env.step(exported(obs, restart))["obs"]
  assert np.ptp(found[:, -12:]) > 1  # of the actions
  text = (
    module.Task.robot.read_text()
    .replace('name="FR_hip"', 'name="hip"')
    .replace('joint="FR_hip"', 'joint="hip"')
  )
  (tmp_path / "other.xml").write_text(text)
  with pytest.raises(SystemExit, match=r"has the joints .*'hip', .* not those of the policy"):
    run_onnx.walk(str(tmp_path / NAMES[0]), str(tmp_path / "other.xml"), env.dt)
  np.testing.assert_allclose(found, wanted, atol=1e-3)
