"""Both engines start alike, make the same run and have room for it, on whatever device."""

import numpy as np
import pytest
import torch

import physics
from benchmarks import cases, report
from benchmarks.physics import gpu, models, speed

CASE = cases.PhysicsCase("hopper", "hopper", warm=2, goal=1, num_envs=16, steps=3)


@pytest.fixture(scope="module")
def situation() -> speed.Situation:
  return speed.find_situation(CASE, physics.Simulation(models.load("hopper"), CASE.num_envs, threads=1))


def test_more_environments_start_as_the_first_ones_do(situation, device: torch.device) -> None:
  own = gpu.Own(models.load("hopper"), 24, device)
  own.start(situation)
  np.testing.assert_array_equal(own.qpos[:16].cpu(), situation.qpos.astype(np.float32))
  assert own.qpos[16:].equal(own.qpos[:8])


@pytest.mark.slow  # mujoco_warp's kernels take half a minute to build
def test_both_make_the_same_run(situation, device: torch.device) -> None:
  model = models.load("hopper")
  own, peer = gpu.Own(model, 24, device), gpu.Peer(model, 24, device, situation)
  controls = gpu.controls_of(situation, 24, device)
  assert gpu.difference(own, peer, situation, controls).max() < 1e-4
  for engine in (own, peer):
    assert gpu.timed(engine, situation, controls)() > 0
    assert engine.dropped() == 0


def test_physics_is_measured_by_the_number_of_environments(capsys) -> None:
  gpu.run(["device=cpu", "cases=[hopper]", "num_envs=[64,96]"])
  figures = report.read(capsys.readouterr().out)
  assert figures["gpu.hopper.bytes_per_env"] > 0
  for num_envs in (64, 96):
    assert figures[f"gpu.hopper.envs{num_envs}.gpurobot"] > 0
    assert figures[f"gpu.hopper.envs{num_envs}.gpurobot.dropped"] == 0
