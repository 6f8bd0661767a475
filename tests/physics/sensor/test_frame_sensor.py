"""Points inside sites of every shape; frames of every kind are compared in test_sensors.py."""

import numpy as np

from physics.load import load_model
from physics.parity.states import States
from tests.physics.reports import reports

SHAPES = ("sphere", "capsule", "ellipsoid", "cylinder", "box")


def test_points_inside_sites_are_mujocos():
  site = '<site name="{0}" type="{0}" size="0.5 0.7 0.3" pos="1 2 3" euler="20 50 70"/>'
  sensor = '<insidesite objtype="xbody" objname="point" site="{}"/>'
  model = load_model(f"""<mujoco><worldbody>{"".join(map(site.format, SHAPES))}
    <body name="point" pos="1 2 3"><freejoint/><geom size="0.1"/></body>
  </worldbody><sensor>{"".join(map(sensor.format, SHAPES))}</sensor></mujoco>""")
  random = np.random.default_rng(0)
  qpos = np.tile(model.qpos0, (200, 1))
  qpos[:, :3] += random.uniform(-0.8, 0.8, size=(200, 3))
  states = States(qpos, np.zeros((200, 6)), np.zeros((200, 0)))
  found, expected = reports(model, states, ["sensordata"])["sensordata"]
  inside = expected.sum(axis=0)
  assert ((inside > 10) & (inside < 190)).all()
  np.testing.assert_array_equal(found, expected)


def test_what_stands_still_feels_its_weight():
  model = load_model("""<mujoco><worldbody>
    <body euler="90 0 0"><geom size="0.1" mass="2"/><site name="site"/></body>
  </worldbody><sensor><accelerometer site="site"/><force site="site"/></sensor></mujoco>""")
  states = States(np.zeros((1, 0)), np.zeros((1, 0)), np.zeros((1, 0)))
  found, expected = reports(model, states, ["sensordata"])["sensordata"]
  np.testing.assert_allclose(found[0], [0, 9.81, 0, 0, 19.62, 0], atol=1e-12)
  np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_body_without_mass_is_where_those_below_it_are():
  model = load_model("""<mujoco><worldbody>
    <site name="there" size="0.1" pos="1 0 0"/><site name="here" size="0.1"/>
    <body name="empty">
      <body pos="1 0 0"><joint/><geom size="0.1"/></body><body pos="1 0 0"><geom size="0.1"/></body>
    </body>
  </worldbody><sensor>
    <insidesite objtype="body" objname="empty" site="there"/>
    <insidesite objtype="body" objname="empty" site="here"/>
  </sensor></mujoco>""")
  states = States(np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 0)))
  found, expected = reports(model, states, ["sensordata"])["sensordata"]
  np.testing.assert_array_equal(expected[0], [1, 0])
  np.testing.assert_array_equal(found, expected)
