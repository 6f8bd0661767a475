"""Edges of spatial algebra on plain numbers; test_parity.py compares what every model makes of it."""

import numpy as np
import pytest

from physics.algebra.spatial import (
  ZERO,
  Force,
  Matrix,
  Motion,
  Quaternion,
  Stiffness,
  Vector,
  constant,
  vector,
)
from physics.trace.trace import Program


@pytest.fixture
def random():
  return np.random.default_rng(0)


@pytest.fixture
def draw(random):
  """Return a function that draws a Vector of plain floats."""
  return lambda: Vector(*random.normal(size=3).tolist())


def matrix_of(rows):
  return Matrix(*(Vector(*row) for row in np.asarray(rows).tolist()))


def six(part):
  return np.array(part.components)


def test_constant_vectors_lose_residue():
  assert vector([1e-13, -1e-13, 1e-11]) == (0.0, 0.0, 1e-11)
  with pytest.raises(TypeError, match="depends on the state"):
    constant(Program().read_memory("state", 0))


def test_a_quaternion_times_its_conjugate_is_no_turn(random):
  q = Quaternion.normalize(random.normal(size=4).tolist())
  np.testing.assert_allclose((q * q.conjugate).components, [1, 0, 0, 0], atol=1e-15)


def test_normalisation():
  assert Quaternion.normalize([0.0, 0.0, 0.0, 0.0]).components == (1.0, 0.0, 0.0, 0.0)
  np.testing.assert_allclose(Quaternion.normalize([0.0, 3.0, 0.0, 4.0]).components, [0, 0.6, 0, 0.8])
  np.testing.assert_allclose(Quaternion.normalize([0.0, 2e-14, 0.0, 0.0]).components, [0, 1, 0, 0])
  assert Quaternion.constant(np.array([1 + 1e-13, 1e-13, 0, 0])).components == (1.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("angle", [1e-9, 0.5, 3.0, -3.0, 3.5, 6.0])
def test_rotation_vectors_take_the_short_way(angle):
  axis, turn = Quaternion.about(Vector(0.6, 0.0, 0.8), angle).rotation_vector()
  short = (angle + np.pi) % (2 * np.pi) - np.pi
  np.testing.assert_allclose(axis * turn, short * np.array([0.6, 0, 0.8]), atol=1e-14)
  assert -np.pi <= turn <= np.pi


def test_no_rotation_has_no_axis():
  assert Quaternion.constant((1, 0, 0, 0)).rotation_vector() == (ZERO, 0.0)


def test_stiffness_acts_at_its_point(random, draw):
  root = random.normal(size=(3, 3))
  linear, point, motion = matrix_of(root @ root.T), draw(), Motion(draw(), draw())
  stiffness = Stiffness.at(point, linear)
  expected = Force.at(point, linear @ motion.at(point))
  np.testing.assert_allclose(six(stiffness @ motion), six(expected), rtol=1e-12)
  assert len(stiffness.components) == 21
  other = Stiffness.of(list(stiffness.components))
  np.testing.assert_allclose(six((stiffness + other) @ motion), 2 * six(expected), rtol=1e-12)
