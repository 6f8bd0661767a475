"""The assembled Newton matrix against NumPy's dense one."""

import numpy as np
import pytest

from physics.dynamics.dynamics import body_inertias, composite_inertias, mass_matrix
from physics.dynamics.kinematics import poses
from physics.parity import random_states
from physics.solver.assembled import Couplings, factor_assembled, pairs_among
from tests.physics.conftest import load
from tests.physics.oracle import dense, evaluate
from tests.physics.solver.test_articulated import body_jacobian, random_stiffness, six_by_six


@pytest.mark.parametrize("name", ["self_contact", "springs", "free_bodies"])
def test_stiffness_of_bodies_and_couplings_enter_the_matrix(name):
  model, random = load(name), np.random.default_rng(0)
  p = poses(model, random_states(model, 1).qpos[0].tolist())
  M = mass_matrix(model, p, composite_inertias(model, body_inertias(model, p)))
  bodies = [body for body in range(1, model.nbody) if model.body_dofnum[body]][::2]
  stiffness = {body: random_stiffness(random) for body in bodies}
  coupling = {(model.nv - 1, 0): 0.1, (model.nv - 1, model.nv - 1): 2.0}
  H = dense(M.add(coupling))
  for body, K in stiffness.items():
    J = body_jacobian(model, p, body)
    H += J.T @ six_by_six(K) @ J
  b = random.normal(size=model.nv)
  found = factor_assembled(model, p, M, stiffness, [coupling]).solve(b.tolist())
  np.testing.assert_allclose(found, np.linalg.solve(H, b), rtol=1e-7, atol=1e-9)


def test_columns_add_their_products():
  dofs, count = (1, 3, 4), 2

  def traced(program, *numbers):
    couplings = Couplings(program, pairs_among(dofs) | pairs_among((0, 1)))
    columns = [dict(zip(dofs, numbers[3 * k : 3 * k + 3], strict=True)) for k in range(count)]
    with program.loop(2):
      couplings.push(columns)
    couplings.push([{0: numbers[0], 1: 1.0}])
    entries = couplings.entries()
    return [entries.get((max(i, j), min(i, j)), numbers[0] - numbers[0]) for i in range(5) for j in range(5)]

  numbers = np.random.default_rng(0).normal(size=(6, 4))
  found = evaluate(traced, *numbers).T.reshape(4, 5, 5)
  for env, values in enumerate(numbers.T):
    V = np.zeros((5, 3))
    V[list(dofs), :2] = np.sqrt(2) * values.reshape(count, 3).T
    V[:2, 2] = values[0], 1.0
    np.testing.assert_allclose(found[env], V @ V.T, atol=1e-12)
