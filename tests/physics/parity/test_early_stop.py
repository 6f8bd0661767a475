"""The distance from the solution at which a file's number of iterations leaves both solvers."""

import dataclasses

import numpy as np
import pytest

from physics.parity import NumpySimulation, recorded_states
from physics.parity.early_stop import stopping_errors
from tests.physics.conftest import load

STATES = 48


@pytest.fixture(scope="module")
def states():
  return recorded_states(load("condim"), STATES)


def errors_after(iterations, states):
  model = dataclasses.replace(load("condim"), iterations=iterations)
  return stopping_errors(model, states, NumpySimulation(model, STATES, ("qacc",)))


def test_both_solvers_are_stopped_after_the_same_iterations(states):
  engine, mujoco = errors_after(1, states)
  assert engine.shape == mujoco.shape == (STATES,)
  assert min(engine.max(), mujoco.max()) > 0.01
  engine, mujoco = errors_after(100, states)
  assert max(engine.max(), mujoco.max()) < 1e-6


def test_a_wrong_engine_is_told_apart_from_a_stopped_one(states):
  model = dataclasses.replace(load("condim"), iterations=100)
  heavier = dataclasses.replace(model, gravity=model.gravity * 1.1)
  engine, mujoco = stopping_errors(model, states, NumpySimulation(heavier, STATES, ("qacc",)))
  assert np.median(engine) > 1e-3
  assert mujoco.max() < 1e-6
