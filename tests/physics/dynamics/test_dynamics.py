"""Ancestors, and a fast body in float32; test_parity.py compares qM and qfrc_bias of every model."""

import numpy as np
import torch

from physics.dynamics.dynamics import ancestors
from physics.engines import NumpySimulation
from physics.load import load_model
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at

BRICK = """<mujoco><worldbody><body><freejoint/><geom type="box" size="0.03 0.02 0.01" mass="0.1"/></body>
  </worldbody></mujoco>"""


def test_ancestors_come_nearest_first():
  model = load("self_contact")
  assert list(ancestors(model, 7)) == [6, 5, 4, 3, 2, 1, 0]
  assert list(ancestors(model, 8)) == [5, 4, 3, 2, 1, 0]
  assert list(ancestors(model, 0)) == []


def test_float32_leaves_a_fast_small_body_its_turning():
  """The product of velocity and momentum is zero, but its rounding is large beside a small inertia."""
  model = load_model(BRICK)
  simulation = NumpySimulation(model, 64, ("qacc_smooth",), np.float32)
  random = np.random.default_rng(0)
  qvel = random.normal(size=(64, 6)).astype(np.float32) * [10, 10, 10, 3, 3, 3]
  simulation.qvel[:] = torch.from_numpy(qvel)
  simulation.forward()
  expected = [mujoco_at(model, model.qpos0, each).qacc_smooth for each in np.asarray(simulation.qvel, float)]
  np.testing.assert_allclose(simulation.qacc_smooth.numpy(), expected, atol=1e-5)
