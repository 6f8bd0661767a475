"""An exported policy tracks a motion in plain MuJoCo as in its task."""

import dataclasses

import numpy as np
import torch

import tasks
from examples import track_onnx
from gpurobot.deploy.deployed import Deployed
from gpurobot.deploy.exported import NAMES, Exported, write
from gpurobot.deploy.manifest import describe
from gpurobot.learn.random import Random
from gpurobot.settings.config import defaults
from physics.parity import MujocoSimulation
from physics.save import save_model
from tests.gpurobot.policies import make

STEPS = 5  # later, rounding of 1e-7 has grown to be seen
QUIET = {"start_place": 0.0, "start_turn": 0.0, "start_velocity": 0.0, "start_angle": 0.0}


def test_a_robot_tracks_in_plain_mujoco_as_in_its_task(tmp_path):
  module = tasks.load("motion_track")
  config = defaults(module)
  config = dataclasses.replace(config, env=dataclasses.replace(config.env, starts="first", **QUIET))
  simulation = MujocoSimulation(module.Task.make_model(config.env), 1, module.Task.outputs)
  env = module.Task(config.env, 1, random=Random(0, 1), training=False, simulation=simulation)
  deployed = Deployed(make(env.obs_dims, env.num_actions), None)
  write(deployed, describe(config, env, deployed), tmp_path)
  assert env.write_files(tmp_path) == ["motion_0_walk.npz"]
  save_model(env.scene(config.env), tmp_path / "robot.xml")
  files = [str(tmp_path / name) for name in (NAMES[0], "motion_0_walk.npz", "robot.xml")]
  found, errors = track_onnx.track(*files, STEPS)

  exported, restart = Exported(tmp_path / NAMES[0], 1), torch.zeros(1, dtype=torch.bool)
  env.reset()
  obs, wanted, away = env.observations.restart(env.observe(), ~restart), [], []
  for _ in range(STEPS):
    wanted.append(obs["policy"][0].numpy())
    away.append(float(env.metrics()["joint_error"]))
    obs = env.step(exported(obs, restart))["obs"]
  assert np.ptp(found[:, -21:]) > 0.5  # of the actions
  np.testing.assert_allclose(found, wanted, atol=1e-3)
  np.testing.assert_allclose(np.abs(errors).mean(1), away, atol=1e-4)
