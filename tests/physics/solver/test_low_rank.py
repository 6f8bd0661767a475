"""The low-rank correction against the dense inverse."""

import numpy as np
import pytest

from physics.dynamics.articulated import factor_articulated, welded_inertias
from physics.dynamics.dynamics import body_inertias, composite_inertias, mass_matrix
from physics.dynamics.kinematics import poses
from physics.solver.low_rank import LowRank
from tests.physics.conftest import load
from tests.physics.oracle import dense, evaluate

ENVS, COLUMNS = 6, 3


@pytest.fixture(scope="module")
def system():
  """Return a factor and its matrix H."""
  model = load("self_contact")
  p = poses(model, model.qpos0.tolist())
  inertias, armature = body_inertias(model, p), (model.dof_armature + 0.01).tolist()
  M = mass_matrix(model, p, composite_inertias(model, p, inertias))
  factor = factor_articulated(model, p, welded_inertias(model, inertias), {}, armature)
  return factor, dense(M) + 0.01 * np.eye(model.nv)


@pytest.mark.parametrize("columns", [0, 1, COLUMNS])
def test_columns_are_added_to_the_matrix(system, columns):
  factor, H = system
  n = len(H)

  def traced(program, *numbers):
    b, dofs = numbers[:n], range(2, n)
    correction = LowRank(program, factor, factor.half_solve(b), COLUMNS)
    for i in range(columns):
      values = numbers[n + i * n : n + (i + 1) * n]
      correction.push([{dof: values[dof] for dof in dofs}])
    return factor.finish_solve(correction.corrected())

  numbers = np.random.default_rng(0).normal(size=(n * (1 + COLUMNS), ENVS))
  found = evaluate(traced, *numbers).T
  for env, (b, *vectors) in enumerate(numbers.reshape(-1, n, ENVS).transpose(2, 0, 1)):
    V = np.array(vectors[:columns]).reshape(columns, n).T
    V[:2] = 0.0
    np.testing.assert_allclose(found[env], np.linalg.solve(H + V @ V.T, b), rtol=1e-7, atol=1e-9)


def test_columns_that_no_lane_needs_are_skipped_and_zero_ones_change_nothing(system):
  factor, H = system
  n = len(H)

  def traced(program, b0, scale):
    b = [b0 * float(k + 1) for k in range(n)]
    correction = LowRank(program, factor, factor.half_solve(b), COLUMNS)
    for threshold in (100.0, 0.0):
      with program.when_any(scale > threshold):
        correction.push([{3: scale, 7: 2.0 * scale}])
    return factor.finish_solve(correction.corrected())

  scale = np.array([0.0, 1.0, 3.0])
  found = evaluate(traced, np.ones(3), scale).T
  for env, s in enumerate(scale):
    v = np.zeros(n)
    v[[3, 7]] = s, 2 * s
    np.testing.assert_allclose(
      found[env], np.linalg.solve(H + np.outer(v, v), np.arange(1, n + 1)), rtol=1e-7
    )
