"""Force and growth of joint rows, from differences of their cost."""

import numpy as np
import pytest

from physics.constraint.joint_rows import ConstraintRow, JointRows
from tests.physics.oracle import evaluate


@pytest.fixture
def random():
  return np.random.default_rng(0)


ROWS = [
  ConstraintRow({0: 1.0}, 2.0, 0.3, -0.5, 0.5),
  ConstraintRow({1: -1.0}, 3.0, -0.2, low=0.0),
  ConstraintRow({0: 0.6, 2: -0.8}, 0.7, 0.1, low=0.0),
]
J, D, BIAS = (
  np.array([[1, 0, 0], [0, -1, 0], [0.6, 0, -0.8]]),
  np.array([2, 3, 0.7]),
  np.array([0.3, -0.2, 0.1]),
)


def row_cost(x):
  """Return the cost of ROWS at x [3]: half D r^2 below zero, Huber's for friction loss."""
  r = J @ x + BIAS
  huber = 0.5 * D[0] * r[0] ** 2 if abs(D[0] * r[0]) < 0.5 else 0.5 * abs(r[0]) - 0.125 / D[0]
  return huber + 0.5 * D[1:] @ np.minimum(r[1:], 0) ** 2


def test_joint_rows_force_and_growth_follow_from_their_cost(random):
  def traced(program, *numbers):
    rows, unsolved = JointRows(program, 3, ROWS), numbers[0] < 1e9
    rows.start(numbers[:3])
    line = rows.aim(numbers[3:], unsolved)
    line.move(0.25, unsolved)
    growth = line.growth(0.5, unsolved)
    return [*rows.force(unsolved), growth.beyond_tangent, growth.slope, growth.curvature]

  x, direction = random.normal(size=(2, 3, 40))
  found = evaluate(traced, *x, *direction).T
  h = 1e-5
  for env, (at, along) in enumerate(zip((x + 0.25 * direction).T, direction.T, strict=True)):
    gradient = [(row_cost(at + h * e) - row_cost(at - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(found[env, :3], np.negative(gradient), atol=1e-4)
    before, there, after = (row_cost(at + (0.5 + t) * along) for t in (-h, 0, h))
    start, slope = row_cost(at), np.dot(gradient, along)
    assert found[env, 3] == pytest.approx(there - start - 0.5 * slope, abs=1e-4)
    assert found[env, 4] == pytest.approx((after - before) / (2 * h) - slope, abs=1e-4)
    assert found[env, 5] == pytest.approx((after - 2 * there + before) / h**2, abs=1e-3)
