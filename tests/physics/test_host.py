"""States that MuJoCo C computes before a simulation begins."""

import numpy as np
import pytest

import physics
from physics.host import evaluate, lowest

ROBOT = """
<mujoco>
  <option timestep="0.01" gravity="0 0 -10"/>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 1"><joint type="slide" axis="0 0 1"/><geom size="0.1" mass="1"/></body>
  </worldbody>
</mujoco>"""


def test_each_state_is_evaluated_by_itself():
  model = physics.load_model(ROBOT)
  found = evaluate(model, {"qpos": np.array([[0.0], [-0.95], [1.0]])}, ["ncon", "xpos"])
  assert found["ncon"].tolist() == [0, 1, 0]
  np.testing.assert_allclose(found["xpos"][:, 1, 2], [1.0, 0.05, 2.0])


def test_steps_go_on_from_each_state():
  model = physics.load_model(ROBOT)
  states = {"qpos": np.array([[5.0], [5.0]]), "qvel": np.array([[0.0], [1.0]])}
  found = evaluate(model, states, ["qvel", "xpos"], steps=10)
  np.testing.assert_allclose(found["qvel"][:, 0], [-1.0, 0.0], atol=1e-12)
  np.testing.assert_allclose(found["xpos"][:, 1, 2], 6.0 - 0.001 * 55 + np.array([0.0, 0.1]))  # Euler's sums


def test_the_lowest_point_of_each_configuration_is_measured_above_the_plane():
  model = physics.load_model(ROBOT)
  np.testing.assert_allclose(lowest(model, np.array([[0.0], [-0.95]])), [0.9, -0.05], atol=1e-9)
  with pytest.raises(ValueError, match="no plane to stand on"):
    lowest(physics.load_model(ROBOT.replace("plane", "box")), np.zeros((1, 1)))
