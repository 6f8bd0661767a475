"""The block matrix against NumPy's dense solution."""

import numpy as np
import pytest

from physics.algebra import block_matrix
from physics.algebra.block_matrix import BlockMatrix, factored
from physics.algebra.sparse import SparseFactor, SparseMatrix
from tests.physics.oracle import evaluate

ENVS = 4


@pytest.mark.parametrize("n", [1, 5, 6, 13, 24])
def test_solution_with_entries_and_columns_over_all_degrees_of_freedom(n):
  entries = {(i, i): 1.0 + i for i in range(n)} | ({(n - 1, 0): 0.3} if n > 1 else {})

  def traced(program, *numbers):
    b, v, w = (numbers[k * n : (k + 1) * n] for k in range(3))
    H = BlockMatrix(program, n)
    H.add(entries)
    with program.loop(2):
      H.push([dict(enumerate(v)), dict(enumerate(w))])
    H.factor()
    return H.solve(b)

  numbers = np.random.default_rng(0).normal(size=(3 * n, ENVS))
  found = evaluate(traced, *numbers).T
  for env, (b, *V) in enumerate(numbers.reshape(3, n, ENVS).transpose(2, 0, 1)):
    H = 2 * np.transpose(V) @ V
    for i, j in entries:
      H[i, j] += entries[i, j]
      H[j, i] += entries[i, j] if i != j else 0.0
    np.testing.assert_allclose(found[env], np.linalg.solve(H, b), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("most", "kind"), [(1000, SparseFactor), (10, BlockMatrix)])
def test_a_large_factorisation_is_a_loop_with_the_same_solution(monkeypatch, most, kind):
  monkeypatch.setattr(block_matrix, "UNROLLED", most)
  n, A = 8, np.random.default_rng(3).normal(size=(8, 8))
  H = A @ A.T + np.eye(n)

  def traced(program, *b):
    factor = factored(
      program, SparseMatrix(n, {(i, j): float(H[i, j]) for i in range(n) for j in range(i + 1)})
    )
    assert isinstance(factor, kind)
    return factor.solve(b)

  b = np.random.default_rng(4).normal(size=(n, ENVS))
  np.testing.assert_allclose(evaluate(traced, *b), np.linalg.solve(H, b), rtol=1e-9, atol=1e-11)


def test_columns_of_other_degrees_of_freedom_in_each_environment():
  """Blocks are skipped where no environment fills them, and fill in while the matrix is factored."""
  n = 30

  def traced(program, *numbers):
    H, first = BlockMatrix(program, n), numbers[-1]
    H.add({(i, i): 2.0 for i in range(n)})
    for ends in ((0, 11), (11, 29), (5, 29)):
      with program.when_any(first > -1.0):
        H.push([{dof: numbers[dof] * (first if dof == ends[0] else 1.0) for dof in ends}])
    H.factor()
    return H.solve(numbers[:n])

  numbers = np.random.default_rng(1).normal(size=(n + 1, ENVS))
  numbers[-1] = [0.0, 1.0, 0.0, 2.0]
  found = evaluate(traced, *numbers).T
  for env, values in enumerate(numbers.T):
    H = 2.0 * np.eye(n)
    for one, two in ((0, 11), (11, 29), (5, 29)):
      column = np.zeros(n)
      column[one], column[two] = values[-1] * values[one], values[two]
      H += np.outer(column, column)
    np.testing.assert_allclose(found[env], np.linalg.solve(H, values[:n]), rtol=1e-9, atol=1e-11)


def test_an_environment_is_the_same_whatever_its_neighbours_fill():
  def traced(program, *numbers):
    H = BlockMatrix(program, 12)
    H.add({(i, i): 3.0 for i in range(12)})
    H.push([dict(enumerate(numbers))])
    H.factor()
    return H.solve([1.0] * 12)

  numbers = np.random.default_rng(2).normal(size=(12, 2))
  numbers[6:, 0] = 0.0
  alone, both = evaluate(traced, *numbers[:, :1]), evaluate(traced, *numbers)
  np.testing.assert_array_equal(alone[:, 0], both[:, 0])
  assert np.abs(both[6:, 0] - 1 / 3).max() < 1e-15


def test_columns_in_two_blocks_of_each_environment():
  n, columns = 24, 3

  def traced(program, lesser, greater, *numbers):
    H, half = BlockMatrix(program, n), 6 * columns
    H.add({(i, i): 2.0 for i in range(n)})
    parts = [
      [list(part[k * columns :][:columns]) for k in range(6)] for part in (numbers[:half], numbers[half:])
    ]
    H.push_pair([lesser, greater], parts, lesser < 1.5)
    H.factor()
    return H.solve([1.0 + i for i in range(n)])

  bodies = np.array([[0.0, 0.0, 1.0, 2.0], [1.0, 1.0, 3.0, 3.0]])
  numbers = np.random.default_rng(5).normal(size=(2 * 6 * columns, ENVS))
  found = evaluate(traced, *bodies, *numbers).T
  for env in range(ENVS):
    V = np.zeros((4, 6, columns))
    if bodies[0, env] < 1.5:
      V[bodies[:, env].astype(int)] = numbers[:, env].reshape(2, 6, columns)
    H = 2.0 * np.eye(n) + V.reshape(n, -1) @ V.reshape(n, -1).T
    np.testing.assert_allclose(found[env], np.linalg.solve(H, 1.0 + np.arange(n)), rtol=1e-9, atol=1e-11)
