"""Rays in MuJoCo C: those of the engine, in every frame, at chosen geoms."""

import numpy as np
import pytest
import torch

import physics
from physics.engines import MujocoSimulation
from physics.engines.rays import axes
from tests.physics.ray.test_raycaster import DIRECTIONS, ORIGINS, ROVER


@pytest.mark.parametrize(("frame", "geoms"), [("body", None), ("yaw", None), ("world", [0, 2])])
def test_rays_in_mujoco_are_those_of_the_engine(frame, geoms):
  model = physics.load_model(ROVER)
  groups = model.mj.geom_group.copy()
  engines = physics.Simulation(model, 6, threads=1, outputs=()), MujocoSimulation(model, 6)
  generator = torch.Generator().manual_seed(0)
  turned = torch.nn.functional.normalize(torch.randn(6, 4, generator=generator), dim=1)
  found = []
  for engine in engines:
    engine.qpos[:, :3] = torch.tensor([0.3, -0.2, 0.9])
    engine.qpos[:, 3:7] = turned
    caster = physics.RayCaster(engine, "rover", ORIGINS, DIRECTIONS, frame, geoms)
    found.append(caster.cast())
    assert found[-1] is caster.distance
  torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5, check_dtype=False)
  assert 0.1 < (found[0] >= 0).float().mean() < 0.98
  np.testing.assert_array_equal(model.mj.geom_group, groups)


def test_axes_of_a_robot_that_heads_for_y_and_rolls():
  rolled = np.array([[0.0, -0.6, 0.8], [1, 0, 0], [0, 0.8, 0.6]])
  np.testing.assert_array_equal(axes("body", rolled), rolled)
  np.testing.assert_allclose(axes("yaw", rolled), [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)
  np.testing.assert_array_equal(axes("world", rolled), np.eye(3))
