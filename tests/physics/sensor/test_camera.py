"""Cameras that move against MuJoCo's, where they look up, down or at nothing too."""

import itertools

from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.reports import assert_equal, reports

MODES = ("fixed", "track", "trackcom", "targetbody", "targetbodycom")
CAMERA = '<camera name="{name}" pos="{pos}" euler="10 20 30" mode="{mode}" {target} resolution="64 48"/>'
SENSORS = """<camprojection site="spot" camera="{0}"/><framepos objtype="camera" objname="{0}"/>
  <framexaxis objtype="camera" objname="{0}"/><framezaxis objtype="camera" objname="{0}"/>"""


def test_random_states_are_mujocos():
  model = load("cameras")
  assert {*model.cam_mode.tolist()} == {1, 2, 3, 4}
  assert_equal(*reports(model, random_states(model, 24), ["sensordata"])["sensordata"], "sensordata")


def test_places_and_axes_are_mujocos():
  names, cameras = [], ""
  for mode, pos in itertools.product(MODES, ("0 0 0", "0 0 9", "1 0 1")):
    names.append(f"{mode} from {pos}")
    target = 'target="ball"' if mode.startswith("target") else ""
    cameras += CAMERA.format(name=names[-1], pos=pos, mode=mode, target=target)
  model = load_model(f"""<mujoco><worldbody>{cameras}<body name="ball" pos="0 0 1">
    <joint type="slide" axis="0 0 1"/><geom size="0.1"/><site name="spot" pos="0.3 0.1 0"/></body>
    </worldbody><sensor>{"".join(map(SENSORS.format, names))}</sensor></mujoco>""")
  found, expected = reports(model, random_states(model, 4), ["sensordata"])["sensordata"]
  width = len(expected[0]) // len(names)
  for k, name in enumerate(names):
    at = slice(width * k, width * (k + 1))
    assert_equal(found[:, at], expected[:, at], name)
