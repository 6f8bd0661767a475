"""Cameras that move against MuJoCo's, where they look up, down or at nothing too."""

import pytest

from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.reports import assert_equal, reports

SCENE = """<mujoco><worldbody>
  <camera name="eye" pos="{0}" euler="10 20 30" mode="{1}" {2} resolution="64 48"/>
  <body name="ball" pos="0 0 1">
    <joint type="slide" axis="0 0 1"/><geom size="0.1"/><site name="spot" pos="0.3 0.1 0"/>
  </body></worldbody>
  <sensor>
    <camprojection site="spot" camera="eye"/><framepos objtype="camera" objname="eye"/>
    <framexaxis objtype="camera" objname="eye"/><framezaxis objtype="camera" objname="eye"/>
  </sensor></mujoco>"""


def test_random_states_are_mujocos():
  model = load("cameras")
  assert {*model.cam_mode.tolist()} == {1, 2, 3, 4}
  assert_equal(*reports(model, random_states(model, 24), ["sensordata"])["sensordata"], "sensordata")


@pytest.mark.parametrize("mode", ["fixed", "track", "trackcom", "targetbody", "targetbodycom"])
@pytest.mark.parametrize("pos", ["0 0 0", "0 0 9", "1 0 1"])
def test_places_and_axes_are_mujocos(mode, pos):
  target = 'target="ball"' if mode.startswith("target") else ""
  model = load_model(SCENE.format(pos, mode, target))
  found, expected = reports(model, random_states(model, 4), ["sensordata"])["sensordata"]
  assert_equal(found, expected, mode)
