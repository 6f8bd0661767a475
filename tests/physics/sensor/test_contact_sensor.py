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


def data(sensor):
  """Return what the engine and MuJoCo measure of three balls that rest on the floor, 1, 10 and 5 mm deep."""
  model = load_model(BALLS.format(sensor))
  states = States(model.qpos0[None].copy(), np.zeros((1, model.nv)), np.zeros((1, 0)))
  found, expected = reports(model, states, ["sensordata"])["sensordata"]
  return found[0], expected[0]


def test_the_deepest_come_first():
  found, expected = data('<contact geom1="floor" num="2" reduce="mindist" data="found dist"/>')
  np.testing.assert_allclose(found, [3, -0.01, 3, -0.005], atol=1e-12)
  np.testing.assert_allclose(found, expected, atol=1e-12)


def test_slots_without_a_contact_are_zero():
  found, expected = data('<contact body1="b" num="2" data="found dist normal"/>')
  np.testing.assert_allclose(found, [1, -0.01, 0, 0, -1, 0, 0, 0, 0, 0], atol=1e-12)
  np.testing.assert_allclose(found, expected, atol=1e-12)


def test_without_a_rank_every_contact_has_a_slot():
  found, expected = data('<contact geom1="floor" num="4" data="dist"/>')
  np.testing.assert_allclose(np.sort(found), [-0.01, -0.005, -0.001, 0], atol=1e-12)
  np.testing.assert_allclose(np.sort(found), np.sort(expected), atol=1e-12)


def test_a_sensor_of_nothing_in_particular_sums_all_contacts():
  found, expected = data('<contact reduce="netforce" data="found force pos"/>')
  np.testing.assert_allclose(found, expected, rtol=1e-9)
  assert found[0] == 3


@pytest.mark.parametrize("reduce", ["none", "netforce"])
def test_what_can_never_touch_measures_nothing(reduce):
  found, expected = data(f'<contact geom1="a" geom2="a" reduce="{reduce}" data="found force normal"/>')
  assert not found.any()
  assert not expected.any()


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("condim", [1, 3, 4, 6])
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
