"""MuJoCo's answers, and what rounding does to them."""

import numpy as np

from physics.load import load_model
from physics.parity import States, one_ulp_effect, relative_error


def test_relative_error_is_per_state_and_absolute_below_one():
  expected = np.array([[0.0, 0.5], [100.0, -200.0]])
  np.testing.assert_allclose(
    relative_error(expected + np.array([[0.1, 0.0], [1.0, 4.0]]), expected), [0.1, 0.02]
  )


def test_one_ulp_shows_where_rounding_matters():
  """An inverted pendulum feels one ulp by about one ulp; where it leans on a stiff limit, a hundredfold."""
  model = load_model("""<mujoco><worldbody><body><joint axis="0 1 0" range="-30 30"/>
    <geom type="capsule" fromto="0 0 0 0 0 1" size="0.1"/></body></worldbody></mujoco>""")
  angles = np.array([[0.3], [np.deg2rad(30) + 1e-4]], dtype=np.float32).astype(float)
  effect = one_ulp_effect(model, States(angles, np.zeros((2, 1)), np.zeros((2, 0)))).qacc
  assert 1e-8 < effect[0] < 1e-6
  assert 1e-5 < effect[1] < 1e-3


def test_one_ulp_counts_inertias_where_they_are_added():
  """A light ball at the end of a long arm: float32 cannot add its inertia about the root more precisely."""
  model = load_model("""<mujoco><worldbody><body><joint axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 1 0 0" size="0.02"/><body pos="1 0 0"><joint axis="1 0 1"/>
    <geom size="0.01" pos="0 0.01 0"/></body></body></worldbody></mujoco>""")
  qpos = np.array([[0.25, 0.5]])
  effect = one_ulp_effect(model, States(qpos, np.ones((1, 2)), np.zeros((1, 0))))
  assert effect.qM < 1e-6
  assert effect.qacc_smooth > 1e-6
