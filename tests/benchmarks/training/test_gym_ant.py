"""The Gymnasium Ant that Stable-Baselines3 trains on is the task that this project trains on."""

import numpy as np
import torch

from benchmarks.training import gym_ant
from gpurobot.learn.random import Random
from physics import load_model
from physics.engines import MujocoSimulation
from tasks import ant


def test_same_observations_and_rewards_as_the_task() -> None:
  peer = gym_ant.Ant()
  peer.reset(seed=0)
  simulation = MujocoSimulation(load_model(ant.Task.robot), 1)
  task = ant.Task(ant.Config(), 1, random=Random(0, 1), training=False, simulation=simulation)
  task.reset()
  simulation.qpos[0], simulation.qvel[0] = torch.from_numpy(peer.data.qpos), torch.from_numpy(peer.data.qvel)
  simulation.qacc_warmstart[0] = torch.from_numpy(peer.data.qacc_warmstart)
  for action in np.random.default_rng(0).uniform(-1.2, 1.2, (30, 8)).astype(np.float32):
    obs, reward, fallen, _, _ = peer.step(action)
    result = task.step(torch.from_numpy(action)[None])
    np.testing.assert_allclose(obs, result["final_obs", "policy"][0], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(reward, result["reward"].item(), rtol=1e-3, atol=1e-3)
    assert fallen == result["terminated"].item()
    if fallen:
      break
