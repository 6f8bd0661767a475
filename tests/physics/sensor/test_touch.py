"""Contacts that a touch sensor feels; shapes of its site are compared with MuJoCo in test_sensors.py."""

import numpy as np

from physics.load import load_model
from physics.parity.states import States
from tests.physics.reports import reports

SITES = (
  'size="0.3"',  # the contact lies within
  'size="0.05" pos="0 0 -0.3"',  # the normal out of the body meets it
  'size="0.05" pos="0.1 0 -0.3"',  # and passes this
  'size="0.05" pos="0 0 0.1"',  # or runs away from it
)


def test_forces_count_whose_contacts_see_the_site():
  sites = "".join(f'<site name="{index}" {words}/>' for index, words in enumerate(SITES))
  sensors = "".join(f'<touch site="{index}"/>' for index in range(len(SITES)))
  model = load_model(f"""<mujoco><worldbody>
    <geom type="plane" size="5 5 1"/><body pos="0 0 0.19"><freejoint/><geom size="0.2"/>{sites}</body>
  </worldbody><sensor>{sensors}</sensor></mujoco>""")
  states = States(model.qpos0[None].copy(), np.zeros((1, 6)), np.zeros((1, 0)))
  values = reports(model, states, ["sensordata", "cfrc_ext"])
  found, expected = values["sensordata"]
  np.testing.assert_allclose(found, expected, rtol=1e-9)
  force = values["cfrc_ext"][0][0, 1, 5]
  assert force > 1.0
  np.testing.assert_allclose(found[0], [force, force, 0.0, 0.0], rtol=1e-9)
