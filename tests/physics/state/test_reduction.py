"""Means and maxima over the time steps of one launch."""

import numpy as np
import pytest
import torch

from physics.parity import NumpySimulation, random_states
from physics.state.layout import Layout
from tests.physics.conftest import load

STEPS = 5


@pytest.fixture(scope="module")
def steps():
  """Return a model, states, and the values of single time steps [STEPS, num_states, nv, ...]."""
  model = load("self_contact")
  states = random_states(model, 4)
  simulation = NumpySimulation(model, 4, ("qacc", "contact_count"))
  states.write_to(simulation)
  values = []
  for _ in range(STEPS):
    simulation.step()
    values.append((simulation.qacc.clone(), simulation.contact_count.clone()))
  qacc, count = (torch.stack(each).numpy() for each in zip(*values, strict=True))
  return model, states, qacc, count


@pytest.mark.parametrize(("how", "reduce"), [("mean", np.mean), ("max", np.max)])
def test_one_launch_gives_what_single_steps_give(steps, how, reduce):
  model, states, qacc, count = steps
  simulation = NumpySimulation(model, 4, {"qacc": how, "contact_count": "last"})
  states.write_to(simulation)
  simulation.step(STEPS)
  np.testing.assert_allclose(simulation.qacc.numpy(), reduce(qacc, axis=0), rtol=1e-9, atol=1e-9)
  np.testing.assert_array_equal(simulation.contact_count.numpy(), count[-1])


def test_launches_do_not_remember_each_other(steps):
  model, states, qacc, _ = steps
  simulation = NumpySimulation(model, 4, {"qacc": "max"})
  states.write_to(simulation)
  for k in range(STEPS):
    simulation.step()
    np.testing.assert_allclose(simulation.qacc.numpy(), qacc[k], rtol=1e-9, atol=1e-9)


def test_refuses_an_unknown_reduction():
  with pytest.raises(ValueError, match="output 'qacc': 'sum' is none of last, mean, max"):
    Layout(load("ball_limit"), {"qacc": "sum"})
