"""Parameters of constraints on plain numbers against MuJoCo's rows."""

import pytest

from physics.constraint.params import constraint_params, contact_cone, contact_params, has_still_geom
from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at

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
