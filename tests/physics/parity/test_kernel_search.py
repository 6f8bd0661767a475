"""The search for contacts in a kernel, and comparisons with what these contacts cause."""

import numpy as np

from physics.load import load_model
from physics.parity import compare, random_states
from physics.parity.compare import SINGLE, Trial
from physics.parity.contacts import contact_errors, traced_contacts
from physics.parity.kernel_search import KernelSearch
from physics.parity.reference import converged
from physics.simulation import Simulation
from tests.physics.conftest import load
from tests.physics.parity.test_compare import prisms


def test_a_kernel_finds_what_numpy_does_in_any_number_of_states_and_keeps_its_own():
  model = load("self_contact")
  states, simulation = random_states(model, 24), Simulation(model, 16)
  simulation.reset()
  simulation.qpos[:, 2] += 0.5
  own = simulation.get_state().clone()
  found = KernelSearch(simulation)(states)
  assert len(found) == 24
  assert sum(map(len, found)) > 24
  assert contact_errors(found, traced_contacts(model, states, np.float32), 0.0)[0].max() < 1e-6
  assert (simulation.get_state() == own).all()


def test_contacts_that_a_kernel_finds_need_not_be_those_of_float64(monkeypatch):
  """Three of the corners of a face are as right as four; where NumPy finds others, states are left open."""
  model = converged(load_model(prisms(60)))
  states = random_states(model, 16)

  def three_corners(model, states, dtype=np.float64):
    found = traced_contacts(model, states, dtype)
    return found if dtype == np.float64 else [rows[:3] for rows in found]

  def given(find):
    return Trial(model, states, find).given(SINGLE)

  monkeypatch.setattr(compare, "traced_contacts", three_corners)
  has_four = np.array([len(rows) > 3 for rows in traced_contacts(model, states)])
  assert has_four.any()
  assert not (given(None) & has_four).any()
  assert (given(lambda some: three_corners(model, some, np.float32)) & has_four).any()
