"""Delayed and periodic sensors along trajectories, against MuJoCo's."""

import mujoco
import numpy as np
import pytest
import torch

from physics.load import load_model
from physics.parity import NumpySimulation
from physics.simulation import Simulation
from tests.physics.conftest import CASES

HINGE = """<mujoco><option timestep="0.01" integrator="{}"/><worldbody>
    <body><joint name="hinge" axis="0 1 0"/><geom size="0.1" pos="1 0 0"/></body>
  </worldbody><sensor><jointpos joint="hinge" {}/></sensor></mujoco>"""


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicitfast"])
def test_trajectories_of_sensors_are_mujocos(integrator):
  model = load_model(CASES["late_sensors"], integrator=integrator)
  simulation, data = NumpySimulation(model, 1, ("sensordata",)), mujoco.MjData(model.mj)
  velocity = np.arange(1.0, 1.0 + model.nv) / 3
  data.qvel[:], simulation.qvel[:] = velocity, torch.from_numpy(velocity)
  for step in range(200):
    data.ctrl[:] = np.sin(0.1 * step)
    simulation.ctrl[:] = np.sin(0.1 * step)
    mujoco.mj_step(model.mj, data)
    simulation.step()
    np.testing.assert_allclose(simulation.sensordata[0], data.sensordata, atol=1e-9, err_msg=str(step))


def falling(sensor, steps):
  """Return the angles that a sensor of a falling hinge shows in each time step, and the true ones."""
  simulation = NumpySimulation(load_model(HINGE.format("Euler", sensor)), 1, ("sensordata",))
  shown, true = [], []
  for _ in range(steps):
    true.append(float(simulation.qpos[0, 0]))
    simulation.step()
    shown.append(float(simulation.sensordata[0, 0]))
  return shown, true


@pytest.mark.parametrize(
  ("sensor", "steps"),  # the time steps in which the angles were measured, -1 before the first
  [
    ('delay="0.03" nsample="3"', (-1, -1, -1, 0, 1, 2, 3, 4)),
    ('interval="0.03" nsample="1"', (0, 0, 0, 3, 3, 3, 6, 6)),
    ('interval="0.03 -0.01" nsample="1"', (-1, -1, 2, 2, 2, 5, 5)),
    ('interval="0.03" delay="0.02" nsample="2"', (-1, -1, -1, 0, 0, 3, 3, 3, 6)),
  ],
  ids=["delayed", "periodic", "phase", "delayed and periodic"],
)
def test_a_sensor_shows_what_it_measured_then_and_zero_before(sensor, steps):
  shown, true = falling(sensor, len(steps))
  assert shown == pytest.approx([true[step] if step >= 0 else 0.0 for step in steps])


def test_an_interval_without_samples_is_idle_as_in_mujoco():
  with pytest.warns(UserWarning, match="sensor 0: interval without nsample has no effect: write nsample="):
    shown, true = falling('interval="0.03"', 8)
  assert shown == pytest.approx(true)


def test_what_is_not_asked_for_is_remembered_too():
  """The substeps of a launch fill the history, and so do steps of simulations that show no sensors."""
  model = load_model(HINGE.format("Euler", 'delay="0.03" nsample="3"'))
  one, other = (Simulation(model, 2, outputs=names) for names in (["sensordata"], ["xpos"]))
  for simulation in (one, other):
    simulation.qvel[:] = 1.0
  one.step(30)
  for _ in range(30):
    other.step()
  before = one.get_state()
  torch.testing.assert_close(before, other.get_state(), rtol=0, atol=0)
  one.forward()  # looks, and moves nothing
  torch.testing.assert_close(one.get_state(), before, rtol=0, atol=0)
  assert one.past_sensordata.any()
  one.reset(torch.tensor([True, False]))
  assert not one.past_sensordata[0].any()
  assert one.past_sensordata[1].any()
