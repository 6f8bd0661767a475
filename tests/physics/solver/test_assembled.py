"""The assembled Newton matrix against NumPy's dense one."""

import numpy as np
import pytest

from physics.algebra.branch_matrix import BranchMatrix
from physics.algebra.sparse import SparseMatrix
from physics.algebra.spatial import Stiffness
from physics.dynamics.dynamics import body_inertias, composite_inertias, mass_matrix
from physics.dynamics.kinematics import Poses, poses
from physics.model.model import Model
from physics.parity import random_states
from physics.solver.assembled import add_stiffness, with_stiffness
from tests.physics.conftest import load
from tests.physics.dynamics.test_articulated import body_jacobian, random_stiffness, six_by_six
from tests.physics.oracle import dense, evaluate


def problem(name: str) -> tuple[Model, Poses, SparseMatrix, dict[int, Stiffness], np.ndarray]:
  """Return a model, a pose of it, M, stiffness for every other body with joints, and M + J^T K J."""
  model, random = load(name), np.random.default_rng(0)
  p = poses(model, random_states(model, 1).qpos[0].tolist())
  M = mass_matrix(model, p, composite_inertias(model, p, body_inertias(model, p)))
  bodies = [body for body in range(1, model.nbody) if model.body_dofnum[body]][::2]
  stiffness, H = {body: random_stiffness(random) for body in bodies}, dense(M)
  for body, K in stiffness.items():
    J = body_jacobian(model, p, body)
    H += J.T @ six_by_six(K) @ J
  return model, p, M, stiffness, H


@pytest.mark.parametrize("name", ["self_contact", "springs", "free_bodies"])
def test_stiffness_of_bodies_and_a_diagonal_enter_the_matrix(name):
  model, p, M, stiffness, H = problem(name)
  diagonal = np.random.default_rng(1).uniform(size=model.nv)
  found = with_stiffness(model, p, M, stiffness, diagonal.tolist())
  np.testing.assert_allclose(dense(found), H + np.diag(diagonal), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["self_contact", "springs", "free_bodies"])
def test_stiffness_enters_the_matrix_over_branches_in_the_lanes_that_have_some(name):
  model, p, M, stiffness, H = problem(name)

  def traced(program, acts, *right):
    lanes = dict.fromkeys(stiffness, acts > 0.5)
    scaled = {body: Stiffness.of([acts * value for value in K.components]) for body, K in stiffness.items()}
    matrix = BranchMatrix(program, model.dof_parentid.tolist(), M.entries)
    add_stiffness(matrix, model, p, scaled, lanes)
    matrix.factor()
    return matrix.solve(right)

  right = np.random.default_rng(2).normal(size=model.nv)
  for acts in ([0.0, 1.0], [0.0, 0.0]):
    found = evaluate(traced, acts, *np.stack([right, right], axis=1))
    for env, act in enumerate(acts):
      expected = np.linalg.solve(H if act else dense(M), right)
      np.testing.assert_allclose(found[:, env], expected, rtol=1e-7, atol=1e-9)
