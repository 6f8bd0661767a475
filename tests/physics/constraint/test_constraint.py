"""Laws on plain numbers against MuJoCo's rows; the cost of rows by differences."""

import numpy as np
import pytest

from physics.constraint.constraint import (
  ConstraintRow,
  JointRows,
  constraint_params,
  contact_cone,
  contact_params,
  has_still_geom,
)
from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import evaluate, mujoco_at

SOLIMPS = {
  "default": "0.9 0.95 0.001 0.5 2",
  "linear": "0.2 0.9 0.05 0.7 1",
  "cubic": "0.6 0.95 0.03 0.3 3",
  "real power": "0.3 0.99 0.04 0.6 2.5",
  "falling": "0.9 0.4 0.02 0.5 2",
  "no width": "0.5 0.9 0 0.5 2",
  "constant": "0.8 0.8 0.01 0.5 2",
  "clipped": "-1 1.5 0.02 0 0.5",
}
SOLREFS = {
  "soft": "0.05 0.7",
  "stiffer than the step": "0.0001 1",
  "direct": "-300 -20",
  "no damping ratio": "0.05 -20",
  "no stiffness": "0 0.7",
}


def hinge(solimp="0.9 0.95 0.001 0.5 2", solref="0.02 1", flag="", **joint):
  attributes = " ".join(f'{name}="{value}"' for name, value in joint.items())
  return load_model(f"""<mujoco><option><flag {flag}/></option><compiler angle="radian"/><worldbody><body>
    <joint range="-0.5 0.5" solimplimit="{solimp}" solreflimit="{solref}" {attributes}/><geom size="1"/>
  </body></worldbody></mujoco>""")


@pytest.mark.filterwarnings("ignore:.*of mixed signs")
@pytest.mark.parametrize("solimp", SOLIMPS)
@pytest.mark.parametrize("solref", SOLREFS)
def test_laws_are_mujocos(solimp, solref):
  model = hinge(SOLIMPS[solimp], SOLREFS[solref])
  limit = constraint_params(model, model.jnt_solref[0], model.jnt_solimp[0], 0.0)
  for depth in (1e-6, 3e-4, 0.004, 0.012, 0.021, 0.035, 0.2):
    data = mujoco_at(model, 0.5 + depth)
    stiffness, damping, impedance, _ = data.efc_KBIP.reshape(-1, 4)[0]
    assert limit.impedance(-depth) == pytest.approx(impedance, rel=1e-9)
    assert limit.stiffness * impedance == pytest.approx(stiffness * impedance, rel=1e-12)
    assert limit.damping == pytest.approx(damping, rel=1e-12)


def test_without_refsafe_the_time_constant_is_taken_as_it_is():
  model = hinge(solref="0.0001 1", flag='refsafe="disable"')
  limit = constraint_params(model, model.jnt_solref[0], model.jnt_solimp[0], 0.0)
  assert limit.damping == pytest.approx(2 / (0.95 * 0.0001))


@pytest.mark.parametrize("name", ["impedance", "margins", "self_contact"])
def test_contact_constants_are_mujocos(name):
  """Each edge's D and the constraint's K and B of every contact of every pair."""
  model = load(name)
  pairs = {(pair.geom1, pair.geom2): pair for pair in model.pairs}
  states, condims = random_states(model, 24), set()
  for qpos in states.qpos:
    data = mujoco_at(model, qpos)
    for contact in data.contact:
      if contact.efc_address < 0:
        continue
      pair, row = pairs[tuple(contact.geom.tolist())], int(contact.efc_address)
      constants, (stiffness, damping, d, _) = contact_params(model, pair), data.efc_KBIP.reshape(-1, 4)[row]
      cone = contact_cone(model, has_still_geom(model, pair))
      edges = (
        max(1, 2 * cone.dim - 2) if contact.dim == 1 else 1
      )  # all edges share a frictionless contact's D
      assert edges * constants["weight"] * d / (1 - d) == pytest.approx(data.efc_D[row], rel=1e-8)
      assert (constants["stiffness"], constants["damping"]) == pytest.approx((stiffness, damping), rel=1e-10)
      condims.add(int(contact.dim))
  assert 3 in condims


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
    rows.aim(numbers[3:], unsolved)
    rows.move(0.25, unsolved)
    growth = rows.growth(0.5, unsolved)
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
