"""Findings of a comparison."""

import numpy as np

from physics.parity.finding import Finding


def test_finding_holds_for_every_state_and_the_median():
  bound = np.array([1.0, 1.0, 2.0])
  assert Finding("x", np.array([0.5, 1.0, 1.9]), bound).holds
  assert not Finding("x", np.array([0.5, 1.1, 1.9]), bound).holds
  assert not Finding("x", np.array([0.5, np.nan, 1.9]), bound).holds
  assert not Finding("x", np.array([0.5, 0.6, 0.1]), bound, median=0.4).holds
  assert Finding("x", np.array([0.5, 1.1, 1.9]), bound).worst == 1
  assert Finding("x", np.array([0.5, np.nan, 9.9]), bound).worst == 1
  assert Finding("x", np.array([np.inf, 0.5, 0.1]), np.array([np.inf, 1.0, 1.0])).worst == 1
