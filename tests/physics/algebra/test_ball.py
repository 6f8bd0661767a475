"""The minimum of a quadratic function within a ball: inside, on the surface, and of a singular matrix."""

import numpy as np
import pytest

from physics.algebra.ball import smallest_in_ball
from tests.physics.oracle import evaluate


def smallest(A, b, radius):
  """Return the minima [n, env] for matrices [n, n, env], vectors [n, env] and radii [env]."""
  n = len(b)

  def traced(program, *numbers):
    matrix = [list(numbers[i * n : (i + 1) * n]) for i in range(n)]
    return smallest_in_ball(program, matrix, list(numbers[n * n : n * n + n]), numbers[-1])

  return evaluate(traced, *A.reshape(n * n, -1), *b, radius)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_is_the_minimum_within_the_ball_and_on_its_surface(n):
  random, count = np.random.default_rng(n), 200
  roots = random.normal(size=(count, n, n)) * 10.0 ** random.uniform(-2, 1, (count, n, 1))
  A, b = roots @ roots.transpose(0, 2, 1) + 1e-3 * np.eye(n), random.normal(size=(count, n))
  radius = 10.0 ** random.uniform(-4, 4, count)
  x = smallest(A.transpose(1, 2, 0), b.T, radius).T
  free = -np.linalg.solve(A, b[..., None])[..., 0]
  inside = np.linalg.norm(free, axis=1) <= radius
  assert 10 < inside.sum() < count - 10
  np.testing.assert_allclose(x[inside], free[inside], rtol=1e-7, atol=1e-9)
  # on the surface the gradient points to the centre
  np.testing.assert_allclose(np.linalg.norm(x[~inside], axis=1), radius[~inside], rtol=1e-12)
  gradient = (A @ x[..., None])[..., 0] + b
  shift = -(gradient * x).sum(1) / radius**2
  assert (shift[~inside] > 0.0).all()
  rest = np.linalg.norm(gradient + shift[:, None] * x, axis=1)[~inside]
  assert (rest <= 1e-9 * np.linalg.norm(b, axis=1)[~inside]).all()


def test_a_singular_matrix_gives_zero():
  A = np.array([[[4.0, 0.0], [2.0, 0.0]], [[2.0, 0.0], [1.0, 3.0]]])
  x = smallest(A, np.ones((2, 2)), np.ones(2))
  assert x.tolist() == [[0.0, 0.0], [0.0, 0.0]]
