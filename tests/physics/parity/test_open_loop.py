"""Open-loop rollouts: rounding parts as MuJoCo's own shadows do, a wrong model parts faster."""

import dataclasses

import numpy as np

from physics.parity import NumpySimulation
from physics.parity.open_loop import ENVIRONMENTS, rollout
from tests.physics.conftest import load


def test_tells_rounding_from_a_wrong_model():
  model = load("direct_solref")
  assert rollout(model, NumpySimulation(model, ENVIRONMENTS, (), np.float32)).holds
  heavier = dataclasses.replace(model, gravity=model.gravity * (1 + 1e-3))
  assert not rollout(model, NumpySimulation(heavier, ENVIRONMENTS, (), np.float32)).holds
