"""The assembled Newton matrix against NumPy's dense one."""

import numpy as np
import pytest

from physics.dynamics.dynamics import body_inertias, composite_inertias, mass_matrix
from physics.dynamics.kinematics import poses
from physics.parity import random_states
from physics.solver.assembled import with_stiffness
from tests.physics.conftest import load
from tests.physics.dynamics.test_articulated import body_jacobian, random_stiffness, six_by_six
from tests.physics.oracle import dense


@pytest.mark.parametrize("name", ["self_contact", "springs", "free_bodies"])
def test_stiffness_of_bodies_and_a_diagonal_enter_the_matrix(name):
  model, random = load(name), np.random.default_rng(0)
  p = poses(model, random_states(model, 1).qpos[0].tolist())
  M = mass_matrix(model, p, composite_inertias(model, body_inertias(model, p)))
  bodies = [body for body in range(1, model.nbody) if model.body_dofnum[body]][::2]
  stiffness = {body: random_stiffness(random) for body in bodies}
  diagonal = random.uniform(size=model.nv)
  H = dense(M) + np.diag(diagonal)
  for body, K in stiffness.items():
    J = body_jacobian(model, p, body)
    H += J.T @ six_by_six(K) @ J
  found = with_stiffness(model, p, M, stiffness, diagonal.tolist())
  np.testing.assert_allclose(dense(found), H, rtol=1e-7, atol=1e-9)
