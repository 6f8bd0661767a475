"""Choices among the distances of prisms; test_hfield.py compares the distances with MuJoCo's."""

import numpy as np
import pytest

from physics.algebra.spatial import Vector
from physics.collision.prism import Best, Prism, Solid, meet
from tests.physics.oracle import evaluate

PRISM = Prism(0.5, 0.3, -0.2, (0.1, 0.4, -0.1))
RANDOM = np.random.default_rng(0)
TURN = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3))).Q
AXES = tuple(Vector(*axis) for axis in (TURN * [[0.11], [0.09], [0.07]]).tolist())  # half axes of a box


def test_only_what_is_clearly_less_is_kept():
  def traced(program, x):
    best = Best(program)
    for value in (2.0 * x, 2.0 * x - 1e-7, x, 3.0 * x):
      best.offer(value, Vector(value, 0.0, 0.0), Vector(0.0, 0.0, value))
    value, one, two = best.result
    return [value, one[0], two[2]]

  np.testing.assert_array_equal(evaluate(traced, [1.0, -1.0]), [[1, -3]] * 3)


@pytest.mark.parametrize(("count", "radius", "reach"), [(0, 0.1, 0.0), (1, 0.05, 0.02)])
def test_quick_tests_keep_what_touches_and_drop_most_of_the_rest(count, radius, reach):
  def traced(program, x, y, z):
    solid = Solid(Vector(x, y, z), AXES[:count], radius)
    distance, *_ = meet(program, PRISM, solid)
    return [distance, PRISM.quick_distance(solid, reach)]

  near = RANDOM.uniform((-0.3, -0.3, -0.3), (0.8, 0.6, 0.6), size=(400, 3))
  distance, bound = evaluate(traced, *near.T)
  touches = distance < reach
  assert (bound[touches] <= distance[touches] + 1e-6).all()
  assert touches.sum() > 40
  assert (bound[~touches] < reach).mean() < 0.25
