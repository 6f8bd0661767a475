"""Sensors of a whole model against MuJoCo's, in states in motion and in contact."""

import warnings

import mujoco
import numpy as np
import pytest
from mujoco import mjtSensor

from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from physics.parity.reference import converging
from physics.sensor import READINGS
from physics.sensor.kinds import Kind
from physics.simulation import Simulation
from tests.physics.conftest import CASES, load
from tests.physics.reports import assert_equal, reports


@pytest.fixture(scope="module")
def case():
  model = load("sensors")
  return model, *reports(model, random_states(model, 48), ["sensordata"])["sensordata"]


def numbers(model, sensor):
  start = model.sensor_adr[sensor]
  return slice(start, start + model.sensor_dim[sensor])


def test_kinds_are_mujocos():
  for kind in Kind:
    assert mjtSensor(kind).name == f"mjSENS_{kind.name}"


def test_every_kind_is_compared(case):
  assert set(case[0].sensor_type.tolist()) == set(READINGS) == set(Kind)


def test_sensors_are_mujocos(case):
  model, found, expected = case
  for sensor in range(model.nsensor):
    at, label = numbers(model, sensor), f"{sensor}: {Kind(model.sensor_type[sensor]).name}"
    assert np.abs(expected[:, at]).max() > 0, f"{label} measures nothing in these states"
    assert_equal(found[:, at], expected[:, at], label)


def test_cutoffs_limit_what_they_should(case):
  model, found, _ = case
  limited = np.flatnonzero(model.sensor_cutoff > 0)
  assert len(limited) > 5
  for sensor in limited.tolist():
    at_cutoff = np.isclose(np.abs(found[:, numbers(model, sensor)]), model.sensor_cutoff[sensor])
    if model.sensor_type[sensor] not in (Kind.GEOMFROMTO, Kind.GEOMNORMAL):
      assert at_cutoff.any(), f"{sensor}: {Kind(model.sensor_type[sensor]).name}"


def test_disabled_sensors_are_zero():
  text = CASES["sensors"].read_text().replace("<option", '<option><flag sensor="disable"/></option><option')
  model = load_model(text)
  found, expected = reports(model, random_states(model, 4), ["sensordata"])["sensordata"]
  assert not expected.any()
  assert not found.any()


UNSUPPORTED = {
  "user": '<user dim="2"/>',
  "a normal": '<rangefinder site="site" data="dist normal"/>',
  "the distance of such shapes": '<distance geom1="floor" geom2="field" cutoff="1"/>',
}


@pytest.mark.parametrize("feature", UNSUPPORTED)
def test_what_is_not_computed_is_named_and_zero(feature):
  xml = f"""<mujoco><asset><mesh name="stone" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
    <geom name="floor" type="plane" size="1 1 1" contype="0" conaffinity="0"/>
    <geom name="field" type="sdf" mesh="stone" contype="0" conaffinity="0"/>
    <camera name="fixed" resolution="2 2"/>
    <body><joint name="hinge"/><geom name="box" type="box" size="1 1 1" contype="0"/><site name="site"/>
      <camera name="tracking" mode="track"/></body>
    <body pos="5 0 0"><geom name="stone" type="mesh" mesh="stone" contype="0" conaffinity="0"/></body>
  </worldbody><sensor>{UNSUPPORTED[feature]}<jointpos joint="hinge"/></sensor></mujoco>"""
  with pytest.warns(UserWarning, match=f"sensor 0 stays zero: {feature} is not supported"):
    model = load_model(xml)
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    found, expected = reports(model, random_states(model, 2), ["sensordata"])["sensordata"]
  assert not found[:, :-1].any()
  np.testing.assert_allclose(found[:, -1], expected[:, -1])


def test_the_clock_does_not_drift():
  """Half a million sums of 0.002 in float32 make 1005 s."""
  model = load_model("""<mujoco><worldbody><body><joint/><geom size="1"/></body></worldbody>
    <sensor><clock/></sensor></mujoco>""")
  simulation = Simulation(model, 2)
  simulation.time[1] = 1000.0
  simulation.step(3001)
  np.testing.assert_allclose(simulation.sensordata[:, 0], [6.0, 1006.0], rtol=1e-6)
  state = simulation.get_state()
  simulation.reset()
  assert not simulation.time.any()
  simulation.set_state(state)
  np.testing.assert_allclose(simulation.time[:, 0], [6.002, 1006.002], rtol=1e-6)


def test_models_without_a_clock_keep_no_time():
  model = load_model("<mujoco><worldbody><body><joint/><geom size='1'/></body></worldbody></mujoco>")
  assert Simulation(model, 2).time.shape == (2, 0)


def test_names_give_places():
  model = load("sensors")
  assert model.sensor_slice("gyro") == numbers(model, model.sensor_names.index("gyro"))
  with pytest.raises(KeyError, match="no sensor 'giro'; the nearest is 'gyro'"):
    model.sensor_slice("giro")


def test_under_runge_kutta_sensors_measure_the_start_of_the_step():
  text = CASES["sensors"].read_text().replace("<option", '<option integrator="RK4"/><option')
  model = load_model(text)
  states = random_states(model, 4)
  simulation = NumpySimulation(model, 4, ("sensordata", "xpos"))
  states.write_to(simulation)
  simulation.step()
  mj = converging(model.mj)
  data = mujoco.MjData(mj)
  for i in range(4):
    mujoco.mj_resetData(mj, data)
    states.load(i, data)
    mujoco.mj_step(mj, data)
    assert_equal(simulation.sensordata[i].numpy(), data.sensordata, "sensordata")
    assert_equal(simulation.xpos[i].numpy(), data.xpos, "xpos")
