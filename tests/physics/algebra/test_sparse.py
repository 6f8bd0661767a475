"""Sparse symmetric matrices on plain numbers against NumPy: a tree's, and one that fills in."""

import numpy as np
import pytest

from physics.algebra.sparse import SparseMatrix
from physics.dynamics.dynamics import ancestors
from tests.physics.conftest import load
from tests.physics.oracle import dense


@pytest.fixture
def random():
  return np.random.default_rng(0)


@pytest.fixture
def factors(random):
  """Return L (unit diagonal) and D of a tree with branches, and the matrix that they make."""
  model = load("self_contact")
  L, D, M = np.eye(model.nv), random.uniform(0.5, 2, model.nv), SparseMatrix(model.nv)
  for i in range(model.nv):
    for j in ancestors(model, i):
      L[i, j] = random.normal()
  full = L.T @ np.diag(D) @ L
  for i in range(model.nv):
    for j in (i, *ancestors(model, i)):
      M[i, j] = float(full[i, j])
  return L, D, M


def test_the_tree_has_the_sparsity_of_its_factors(factors):
  L, D, M = factors
  assert np.count_nonzero(dense(M) == 0.0) > 0
  np.testing.assert_allclose(dense(M), L.T @ np.diag(D) @ L, atol=1e-12)


def test_factors_are_recovered(factors):
  L, D, M = factors
  factor = M.factor()
  np.testing.assert_allclose(1 / np.array(factor.inverse), D, rtol=1e-9)
  found = np.array([[factor.L.entries.get((i, j), 0.0) for j in range(M.n)] for i in range(M.n)])
  np.testing.assert_allclose(np.tril(found, -1), np.tril(L, -1), atol=1e-9)


def test_product_and_solution(factors, random):
  L, D, M = factors
  x = random.normal(size=M.n).tolist()
  np.testing.assert_allclose(M @ x, dense(M) @ x, rtol=1e-10)
  factor = M.factor()
  np.testing.assert_allclose(factor.solve(x), np.linalg.solve(dense(M), x), rtol=1e-8)
  half = factor.half_solve(x)
  np.testing.assert_allclose(half, np.linalg.solve(L.T, x), rtol=1e-9)
  np.testing.assert_allclose(factor.finish_solve(half), np.linalg.solve(np.diag(D) @ L, half), rtol=1e-9)


def test_adding_a_diagonal_leaves_the_matrix_alone(factors):
  _, _, M = factors
  before = dense(M)
  added = M.add({(i, i): float(i) for i in range(M.n)})
  np.testing.assert_allclose(dense(added), before + np.diag(np.arange(M.n)), rtol=1e-15)
  M.factor()
  np.testing.assert_array_equal(dense(M), before)


def test_what_is_not_a_tree_fills_in(random):
  """An arrow whose head is eliminated first couples all of its shaft."""
  n = 6
  M = SparseMatrix(
    n, {(i, i): 9.0 + i for i in range(n)} | {(n - 1, j): random.normal() for j in range(n - 1)}
  )
  assert sum(map(len, M.rows())) == n - 1
  factor = M.factor()
  assert sum(map(len, factor.rows)) == n * (n - 1) // 2
  x = random.normal(size=n).tolist()
  np.testing.assert_allclose(factor.solve(x), np.linalg.solve(dense(M), x), rtol=1e-12)


def test_adding_brings_new_entries():
  M = SparseMatrix(3, {(i, i): 1.0 for i in range(3)}).add({(2, 0): 0.5, (1, 1): 1.0})
  np.testing.assert_array_equal(dense(M), [[1, 0, 0.5], [0, 2, 0], [0.5, 0, 1]])


@pytest.mark.parametrize("dense_columns", [False, True])
def test_products_are_those_that_the_factorisation_writes(factors, dense_columns):
  *_, M = factors
  if dense_columns:
    M = M.add({(i, 0): 0.1 for i in range(M.n)})
  below = [len(row) for row in M.factor().L.rows()]
  assert M.count_products() == sum(count * (count + 1) // 2 for count in below)
