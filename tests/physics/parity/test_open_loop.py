"""Open-loop rollouts: rounding parts as MuJoCo's own shadows do, a wrong model parts faster."""

import dataclasses

import numpy as np

from physics.load import load_model
from physics.parity import NumpySimulation
from physics.parity.open_loop import ENVIRONMENTS, rollout
from tests.physics.conftest import load


def test_tells_rounding_from_a_wrong_model():
  model = load("direct_solref")
  assert rollout(model, NumpySimulation(model, ENVIRONMENTS, (), np.float32)).holds
  heavier = dataclasses.replace(model, gravity=model.gravity * (1 + 1e-3))
  assert not rollout(model, NumpySimulation(heavier, ENVIRONMENTS, (), np.float32)).holds


def test_where_mujocos_own_runs_part_there_is_no_bound():
  servo = """<mujoco><option timestep="0.01"/>
    <worldbody><body><joint name="j" type="slide"/><geom size="0.1" mass="1e-4"/></body></worldbody>
    <actuator><position joint="j" kp="1000"/></actuator></mujoco>"""
  model = load_model(servo)
  finding = rollout(model, NumpySimulation(model, ENVIRONMENTS, (), np.float32))
  assert finding.holds
  assert np.isfinite(finding.bound[0])
  assert np.isinf(finding.bound[-50:]).all()
