"""Solutions by articulated bodies on plain numbers, against the dense matrix."""

import numpy as np
import pytest

from physics.algebra.spatial import Matrix, Motion, Stiffness, Vector
from physics.dynamics.articulated import factor_articulated, welded_inertias
from physics.dynamics.dynamics import body_inertias, composite_inertias, mass_matrix
from physics.dynamics.kinematics import poses
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import dense


def random_stiffness(random):
  root = random.normal(size=(3, 3))
  point, linear = random.normal(size=3).tolist(), (10 * root @ root.T).tolist()
  return Stiffness.at(Vector(*point), Matrix(*(Vector(*row) for row in linear)))


def body_jacobian(model, p, body):
  """Return the motion [6, nv] of a body at unit joint rates."""
  J = np.zeros((6, model.nv))
  while body > 0:
    for dof in range(model.body_dofadr[body], model.body_dofadr[body] + model.body_dofnum[body]):
      J[:, dof] = p.cdof[dof].components
    body = model.body_parentid[body]
  return J


def six_by_six(stiffness):
  unit = [Motion(Vector(*row[:3]), Vector(*row[3:])) for row in np.eye(6).tolist()]
  return np.array([(stiffness @ motion).components for motion in unit]).T


@pytest.fixture(params=["self_contact", "springs", "free_bodies", "static_shapes", "gymnasium/humanoid"])
def case(request):
  """Return a model and H twice: factored by articulated bodies, and dense."""
  model, random = load(request.param), np.random.default_rng(0)
  p = poses(model, random_states(model, 1).qpos[0].tolist())
  inertias = body_inertias(model, p)
  welded = welded_inertias(model, inertias)
  moving = np.flatnonzero(model.body_dofnum).tolist()
  stiffness = {body: random_stiffness(random) for body in moving[::2]}
  diagonal = random.uniform(0, 2, model.nv).tolist()
  H = dense(mass_matrix(model, p, composite_inertias(model, p, inertias))) - np.diag(model.dof_armature)
  H += np.diag(diagonal)
  for body, extra in stiffness.items():
    J = body_jacobian(model, p, body)
    H += J.T @ six_by_six(extra) @ J
  return model, factor_articulated(model, p, welded, stiffness, diagonal), H


def test_solutions_are_those_of_the_dense_matrix(case):
  model, factor, H = case
  b = np.random.default_rng(1).normal(size=model.nv)
  found = factor.finish_solve(factor.half_solve(b.tolist()))
  np.testing.assert_allclose(found, np.linalg.solve(H, b), rtol=1e-7, atol=1e-10)


def test_half_solutions_meet_in_the_inverse(case):
  """The low-rank correction rests on b^T H^-1 c = (L^-T b)^T D^-1 (L^-T c)."""
  model, factor, H = case
  b, c = np.random.default_rng(1).normal(size=(2, model.nv))
  half = [np.array(factor.half_solve(x.tolist())) for x in (b, c)]
  assert half[0] @ (factor.inverse * half[1]) == pytest.approx(b @ np.linalg.solve(H, c), rel=1e-8)


def test_welded_bodies_join_the_body_that_they_move_with():
  model = load("static_shapes")
  inertias = body_inertias(model, poses(model, model.qpos0.tolist()))
  merged = welded_inertias(model, inertias)
  moving = np.flatnonzero(model.body_dofnum).tolist()
  for body in moving:
    parts = np.flatnonzero(model.body_weldid == body)
    assert merged[body].mass == pytest.approx(model.body_mass[parts].sum())
  total = sum(merged[body].mass for body in moving)
  assert total == pytest.approx(model.body_mass[model.body_weldid > 0].sum())
