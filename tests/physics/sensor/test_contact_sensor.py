"""Contacts that a sensor chooses; its reports are compared with MuJoCo in test_sensors.py."""

import numpy as np
import pytest

from physics.load import load_model
from physics.parity.states import States
from tests.physics.reports import assert_equal, reports

BALLS = """<mujoco><worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <body name="a" pos="0 0 0.199"><freejoint/><geom name="a" size="0.2"/></body>
    <body name="b" pos="1 0 0.19"><freejoint/><geom name="b" size="0.2"/></body>
    <body name="c" pos="2 0 0.195"><freejoint/><geom name="c" size="0.2"/></body>
  </worldbody><sensor>{}</sensor></mujoco>"""


SENSORS = {
  "the deepest come first": 'geom1="floor" num="2" reduce="mindist" data="found dist"',
  "slots without a contact are zero": 'body1="b" num="2" data="found dist normal"',
  "without a rank every contact has a slot": 'geom1="floor" num="4" data="dist"',
  "nothing in particular": 'reduce="netforce" data="found force pos"',
  "what can never touch": 'geom1="a" geom2="a" reduce="none" data="found force normal"',
  "what can never touch in sum": 'geom1="a" geom2="a" reduce="netforce" data="found force normal"',
}


def test_sensors_choose_contacts_as_mujocos_do():
  """Of three balls that rest on the floor, 1, 10 and 5 mm deep."""
  sensors = "".join(f'<contact name="{name}" {words}/>' for name, words in SENSORS.items())
  model = load_model(BALLS.format(sensors))
  states = States(model.qpos0[None].copy(), np.zeros((1, model.nv)), np.zeros((1, 0)))
  both = reports(model, states, ["sensordata"])["sensordata"]
  found, expected = ({name: rows[0, model.sensor_slice(name)] for name in SENSORS} for rows in both)
  everyone = "without a rank every contact has a slot"  # in any order
  for numbers in (found, expected):
    numbers[everyone] = np.sort(numbers[everyone])
  by_hand = {
    "the deepest come first": [3, -0.01, 3, -0.005],
    "slots without a contact are zero": [1, -0.01, 0, 0, -1, 0, 0, 0, 0, 0],
    everyone: [-0.01, -0.005, -0.001, 0],
    "what can never touch": [0.0] * 7,
    "what can never touch in sum": [0.0] * 7,
  }
  for name in SENSORS:
    np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(found[name], by_hand.get(name, found[name]), atol=1e-12, err_msg=name)
  assert found["nothing in particular"][0] == 3


@pytest.mark.parametrize(
  ("cone", "condim"), [("pyramidal", 1), ("pyramidal", 4), ("pyramidal", 6), ("elliptic", 3), ("elliptic", 6)]
)
def test_forces_and_frames_of_contacts_are_mujocos(cone, condim):
  everything = 'data="found force torque dist pos normal tangent"'
  model = load_model(f"""<mujoco><option cone="{cone}" impratio="2"/>
    <default><geom condim="{condim}" friction="0.7 0.02 0.01"/></default>
    <worldbody>
      <geom type="plane" size="5 5 1" euler="3 2 0"/>
      <body pos="0 0 0.18"><freejoint/><geom size="0.2"/></body>
      <body pos="0 0.36 0.18" euler="85 0 20"><freejoint/>
        <geom name="capsule" type="capsule" size="0.2 0.3"/></body>
      <body pos="1 0 0.19"><freejoint/><geom name="box" type="box" size="0.3 0.2 0.2"/></body>
      <body pos="1 0 0.58"><freejoint/><geom name="on_box" size="0.2"/></body>
    </worldbody><sensor>
      <contact geom1="capsule" num="4" reduce="mindist" {everything}/>
      <contact geom2="box" num="6" reduce="mindist" {everything}/>
      <contact geom1="box" geom2="on_box" {everything}/>
      <contact geom1="on_box" geom2="box" {everything}/>
      <contact geom1="box" reduce="netforce" {everything}/>
    </sensor></mujoco>""")
  qvel = np.random.default_rng(0).normal(size=(8, model.nv))
  states = States(np.tile(model.qpos0, (8, 1)), qvel, np.zeros((8, 0)))
  found, expected = reports(model, states, ["sensordata"])["sensordata"]
  assert np.abs(expected).max(axis=0).astype(bool).sum() > 40
  assert_equal(found, expected, "contacts")
