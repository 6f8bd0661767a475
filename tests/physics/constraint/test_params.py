"""Laws of constraints on plain numbers against MuJoCo's; test_contact.py compares parameters of contacts."""

import pytest

from physics.constraint.params import constraint_params
from physics.load import load_model
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
