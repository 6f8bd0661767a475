"""Limits of joints where both act at once; other sensors of joints are compared in test_sensors.py."""

import numpy as np
import pytest

from physics.load import load_model
from physics.parity.states import States
from tests.physics.reports import assert_equal, reports


def test_of_two_limits_that_act_the_lower_is_measured():
  model = load_model("""<mujoco><worldbody><body>
    <joint name="slide" type="slide" range="-0.1 0.1" margin="0.3"/><geom size="0.1"/>
  </body></worldbody><sensor>
    <jointlimitpos joint="slide"/><jointlimitvel joint="slide"/><jointlimitfrc joint="slide"/>
  </sensor></mujoco>""")
  qpos = np.array([[-0.4], [-0.05], [0.0], [0.05], [0.3]])
  states = States(qpos, np.full((5, 1), 2.0), np.zeros((5, 0)))
  found, expected = reports(model, states, ["sensordata"])["sensordata"]
  assert_equal(found, expected, "limits")
  np.testing.assert_allclose(found[1:4, 0], qpos[1:4, 0] + 0.1 - 0.3)
  np.testing.assert_array_equal(np.sign(found[:, 1]), [1, 1, 1, 1, -1])


@pytest.mark.parametrize(("flag", "position"), [("enable", 0.1), ("disable", 0.3)])
def test_limits_that_do_not_act_measure_nothing(flag, position):
  model = load_model(f"""<mujoco><option><flag limit="{flag}"/></option><worldbody><body>
    <joint name="hinge" range="-10 10"/><geom size="0.1"/>
  </body></worldbody>
  <sensor><jointlimitpos joint="hinge"/><jointlimitfrc joint="hinge"/></sensor></mujoco>""")
  states = States(np.array([[position]]), np.ones((1, 1)), np.zeros((1, 0)))
  found, expected = reports(model, states, ["sensordata"])["sensordata"]
  assert not expected.any()
  assert not found.any()
