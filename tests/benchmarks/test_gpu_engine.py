"""Both engines start alike, make the same run and have room for it, on whatever device."""

import numpy as np
import pytest
import torch

import physics
from benchmarks import cases, engine, gpu_engine, models, on_device

CASE = cases.PhysicsCase("hopper", "hopper", warm=2, goal=1, num_envs=16, steps=3)


@pytest.fixture(scope="module")
def start() -> engine.Situation:
  return engine.situation(CASE, physics.Simulation(models.load("hopper"), CASE.num_envs, threads=1))


def test_more_environments_start_as_the_first_ones_do(start: engine.Situation, device: torch.device) -> None:
  own = on_device.Own(models.load("hopper"), 24, device)
  own.start(start)
  np.testing.assert_array_equal(own.qpos[:16].cpu(), start.qpos.astype(np.float32))
  assert own.qpos[16:].equal(own.qpos[:8])


@pytest.mark.slow  # mujoco_warp's kernels take half a minute to build
def test_both_make_the_same_run(start: engine.Situation, device: torch.device) -> None:
  model = models.load("hopper")
  own, peer = on_device.Own(model, 24, device), gpu_engine.Peer(model, 24, device, start)
  controls = on_device.repeated(start.controls.transpose(0, 1), 24).transpose(0, 1).to(device)
  assert gpu_engine.difference(own, peer, start, controls).max() < 1e-4
  for one in (own, peer):
    assert on_device.timed(one, start, controls)() > 0
    assert one.dropped() == 0
