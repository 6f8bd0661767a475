"""The matrix over branches against NumPy's dense solution."""

import numpy as np
import pytest

from physics.algebra.branch_matrix import BranchMatrix, limbs, limbs_above
from tests.physics.oracle import evaluate

ENVS = 4
PARENTS = (-1, 0, 1, 2, 2, 4, 5, 1, 7, -1, 9, 10)  # a tree with three branches, and a chain


def ancestors(dof: int) -> list[int]:
  """Return a degree of freedom and those above it."""
  return [] if dof < 0 else [dof, *ancestors(PARENTS[dof])]


def inertia() -> np.ndarray:
  """Return a positive definite matrix with the sparsity of the trees."""
  random, L = np.random.default_rng(0), np.eye(len(PARENTS))
  for i in range(len(PARENTS)):
    L[i, ancestors(i)] = random.normal(size=len(ancestors(i)))
  return L.T @ L + np.eye(len(PARENTS))


def solution(pairs: list[tuple[int, int]], right: np.ndarray, columns: np.ndarray) -> np.ndarray:
  """Return the solution [n, env] with columns [pair, 2, n, env] that are pushed at two places each."""
  M, n = inertia(), len(PARENTS)

  def traced(program, *numbers):
    entries = {(i, j): float(M[i, j]) for i in range(n) for j in ancestors(i)}
    H = BranchMatrix(program, PARENTS, entries)
    for index in range(len(pairs)):
      start = n * (1 + 2 * index)
      H.push([dict(enumerate(numbers[start + n * k : start + n * (k + 1)])) for k in range(2)])
    H.factor()
    return H.solve(numbers[:n])

  return evaluate(traced, *right, *columns.reshape(-1, right.shape[1]))


def random_case(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
  """Return a right side [n, env], and columns that vanish but at the pairs; in one environment also there."""
  random, n = np.random.default_rng(1), len(PARENTS)
  columns = np.zeros((len(pairs), 2, n, ENVS))
  for index, pair in enumerate(pairs):
    columns[index][:, list(pair)] = random.normal(size=(2, 2, ENVS)) * [0.0, 1.0, 1.0, 2.0]
  return random.normal(size=(n, ENVS)), columns


def test_limbs_end_where_a_tree_branches():
  found = limbs(PARENTS)
  assert [list(limb) for limb in found] == [[0, 1], [2], [3], [4, 5, 6], [7, 8], [9, 10, 11]]
  assert limbs_above(PARENTS, found) == [[], [0], [1, 0], [1, 0], [0], []]


@pytest.mark.parametrize(
  "pairs", [[], [(3, 6)], [(11, 3)], [(3, 6), (8, 5), (11, 3)], [(i, j) for i in range(12) for j in range(i)]]
)
def test_solution_with_columns_that_couple_branches(pairs):
  right, columns = random_case(pairs)
  found = solution(pairs, right, columns)
  for env in range(ENVS):
    V = columns[..., env].reshape(-1, len(PARENTS))
    expected = np.linalg.solve(inertia() + V.T @ V, right[:, env])
    np.testing.assert_allclose(found[:, env], expected, rtol=1e-9, atol=1e-11)


def test_an_environment_is_the_same_whatever_its_neighbours_couple():
  pairs = [(3, 6), (8, 5), (11, 3)]
  right, columns = random_case(pairs)
  together = solution(pairs, right, columns)
  for env in range(ENVS):
    alone = solution(pairs, right[:, env : env + 1], columns[..., env : env + 1])
    np.testing.assert_array_equal(alone[:, 0], together[:, env])
