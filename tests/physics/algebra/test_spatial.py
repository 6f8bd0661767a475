"""Spatial algebra on plain numbers, against NumPy and sums over particles."""

import mujoco
import numpy as np
import pytest

from physics.algebra.spatial import (
  AXES,
  ZERO,
  Force,
  Inertia,
  Matrix,
  Motion,
  Quaternion,
  Stiffness,
  Vector,
  constant,
  cross,
  cross_motion,
  dot,
  select,
  symmetric,
  total,
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


def rotation(random):
  return Quaternion.normalize(random.normal(size=4).tolist())


def six(part):
  return np.array(part.components)


def test_vectors(draw):
  a, b = draw(), draw()
  m, n = np.array(a), np.array(b)
  for found, expected in ((a + b, m + n), (a - b, m - n), (-a, -m), (a * 2.5, m * 2.5)):
    assert isinstance(found, Vector)
    np.testing.assert_array_equal(found, expected)
  np.testing.assert_allclose(cross(a, b), np.cross(m, n), rtol=1e-14)
  assert dot(a, b) == pytest.approx(m @ n, rel=1e-14)
  assert total([1.0, 2.0, 3.5]) == 6.5
  assert (select(True, a, b), select(False, a, b)) == (a, b)


def test_constant_vectors_lose_residue():
  assert vector([1e-13, -1e-13, 1e-11]) == (0.0, 0.0, 1e-11)
  with pytest.raises(TypeError, match="depends on the state"):
    constant(Program().read_memory("state", 0))


def test_matrices(random, draw):
  m, n = random.normal(size=(2, 3, 3))
  M, N, a = matrix_of(m), matrix_of(n), draw()
  np.testing.assert_allclose(M @ a, m @ np.array(a), rtol=1e-14)
  np.testing.assert_allclose(M.times(N), m @ n, rtol=1e-13)
  np.testing.assert_array_equal(M.transposed, m.T)
  np.testing.assert_array_equal(M.column(1), m[:, 1])
  np.testing.assert_array_equal(symmetric(1, 2, 3, 4, 5, 6), [[1, 4, 5], [4, 2, 6], [5, 6, 3]])


def test_quaternions_are_mujocos(random):
  p, q = rotation(random), rotation(random)
  product, matrix = np.zeros(4), np.zeros(9)
  mujoco.mju_mulQuat(product, p.components, q.components)
  mujoco.mju_quat2Mat(matrix, p.components)
  np.testing.assert_allclose((p * q).components, product, atol=1e-15)
  np.testing.assert_allclose(p.matrix(), matrix.reshape(3, 3), atol=1e-15)
  np.testing.assert_allclose((p * p.conjugate).components, [1, 0, 0, 0], atol=1e-15)


def test_rotation_about_an_axis(random):
  axis = random.normal(size=3)
  axis /= np.linalg.norm(axis)
  expected = np.zeros(4)
  mujoco.mju_axisAngle2Quat(expected, axis, 2.2)
  np.testing.assert_allclose(Quaternion.about(Vector(*axis), 2.2).components, expected, atol=1e-15)


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


def skew(v):
  return np.array([cross(v, axis) for axis in AXES]).T


def crossing(a):
  """Return the 6 x 6 matrix of the product of a motion with another one."""
  return np.block([[skew(a.angular), np.zeros((3, 3))], [skew(a.linear), skew(a.angular)]])


def test_cross_product_of_motions_is_featherstones(draw):
  a, b = Motion(draw(), draw()), Motion(draw(), draw())
  np.testing.assert_allclose(six(cross_motion(a, b)), crossing(a) @ six(b), rtol=1e-13)


def test_force_of_a_body_in_motion_is_featherstones(draw):
  inertia = Inertia.of_body(0.7, draw(), matrix_of(np.diag([0.3, 0.5, 0.4])))
  v, a = Motion(draw(), draw()), Motion(draw(), draw())
  expected = six(inertia @ a) - crossing(v).T @ six(inertia @ v)
  np.testing.assert_allclose(six(inertia.force(v, a)), expected, rtol=1e-12)


def test_motions_and_forces_at_points(draw):
  velocity, point, push = Motion(draw(), draw()), draw(), draw()
  other = Motion(draw(), draw())
  at_point = np.array(velocity.linear) + np.cross(velocity.angular, point)
  np.testing.assert_allclose(velocity.at(point), at_point, rtol=1e-14)
  assert Force.at(point, push).power(velocity) == pytest.approx(np.dot(push, at_point), rel=1e-13)
  np.testing.assert_allclose(six(velocity + other * 2.0), six(velocity) + 2 * six(other), rtol=1e-14)


def test_inertia_is_that_of_particles(random, draw):
  masses, points = random.uniform(0.1, 1, 5), random.normal(size=(5, 3))
  center = masses @ points / masses.sum()
  offsets = points - center
  about_center = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, offsets, strict=True))
  inertia = Inertia.of_body(masses.sum(), Vector(*center), matrix_of(about_center))
  motion = Motion(draw(), draw())
  momenta = [m * np.array(motion.at(Vector(*x))) for m, x in zip(masses, points, strict=True)]
  momentum = inertia @ motion
  np.testing.assert_allclose(momentum.force, np.sum(momenta, axis=0), rtol=1e-12)
  np.testing.assert_allclose(momentum.torque, np.cross(points, momenta).sum(axis=0), rtol=1e-12)
  twice = (inertia + inertia) @ motion
  np.testing.assert_allclose(six(twice), 2 * six(momentum), rtol=1e-12)


def test_inertia_about_another_point_is_that_of_the_body_there(draw):
  center, point = draw(), draw()
  rotational = symmetric(2.0, 3.0, 4.0, 0.1, 0.2, 0.3)
  found = Inertia.of_body(5.0, center, rotational).about(point)
  expected = Inertia.of_body(5.0, center - point, rotational)
  np.testing.assert_allclose(found.six, expected.six, atol=1e-12)
  np.testing.assert_allclose(found.moment, expected.moment, atol=1e-12)
  assert found.mass == expected.mass


def test_stiffness_acts_at_its_point(random, draw):
  root = random.normal(size=(3, 3))
  linear, point, motion = matrix_of(root @ root.T), draw(), Motion(draw(), draw())
  stiffness = Stiffness.at(point, linear)
  expected = Force.at(point, linear @ motion.at(point))
  np.testing.assert_allclose(six(stiffness @ motion), six(expected), rtol=1e-12)
  assert len(stiffness.components) == 21
  other = Stiffness.of(list(stiffness.components))
  np.testing.assert_allclose(six((stiffness + other) @ motion), 2 * six(expected), rtol=1e-12)
