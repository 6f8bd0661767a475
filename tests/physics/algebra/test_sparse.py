"""A sparse symmetric matrix that fills in, and the work of factoring; test_parity.py compares trees."""

import numpy as np
import pytest

from physics.algebra.sparse import SparseMatrix
from physics.dynamics.dynamics import ancestors
from tests.physics.conftest import load
from tests.physics.oracle import dense


@pytest.fixture
def random():
  return np.random.default_rng(0)


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


@pytest.mark.parametrize("dense_columns", [False, True])
def test_products_are_those_that_the_factorisation_writes(random, dense_columns):
  """Of a tree with branches, and where one column of it is dense."""
  model = load("self_contact")
  M = SparseMatrix(model.nv, {(i, i): 9.0 for i in range(model.nv)})
  M = M.add({(i, j): random.normal() for i in range(model.nv) for j in ancestors(model, i)})
  if dense_columns:
    M = M.add({(i, 0): 0.1 for i in range(M.n)})
  below = [len(row) for row in M.factor().L.rows()]
  assert M.count_products() == sum(count * (count + 1) // 2 for count in below)
