"""Sensors of a whole model against MuJoCo's, in float64 without compilation."""

import mujoco
import numpy as np
import pytest
from mujoco import mjtSensor

from physics.parity import NumpySimulation, random_states
from physics.parity.reference import converging
from physics.sensor import READINGS
from physics.sensor.kinds import Kind
from tests.physics.conftest import load

COUNT = 48


def measured(model, states):
  """Return sensordata [num_states, nsensordata] of the engine, and of MuJoCo."""
  simulation = NumpySimulation(model, len(states), ("sensordata",))
  states.write_to(simulation)
  simulation.forward()
  mj = converging(model.mj)
  data, expected = mujoco.MjData(mj), []
  for i in range(len(states)):
    mujoco.mj_resetData(mj, data)
    states.load(i, data)
    mujoco.mj_forward(mj, data)
    expected.append(data.sensordata.copy())
  return simulation.sensordata.numpy(), np.array(expected)


@pytest.fixture(scope="module")
def case():
  model = load("sensors")
  return model, *measured(model, random_states(model, COUNT))


def test_every_kind_of_sensor_is_compared(case):
  assert set(case[0].sensor_type.tolist()) == set(READINGS)


def test_kinds_are_mujocos():
  for kind in Kind:
    assert mjtSensor(kind).name == f"mjSENS_{kind.name}"


def test_sensors_are_mujocos(case):
  model, found, expected = case
  for sensor in range(model.nsensor):
    at, label = slice_of(model, sensor), f"{sensor}: {Kind(model.sensor_type[sensor]).name}"
    assert np.abs(expected[:, at]).max() > 0, f"{label} measures nothing in these states"
    scale = max(1.0, np.abs(expected[:, at]).max())
    np.testing.assert_allclose(found[:, at], expected[:, at], atol=1e-9 * scale, err_msg=label)


def slice_of(model, sensor):
  start = model.sensor_adr[sensor]
  return slice(start, start + model.sensor_dim[sensor])
