"""Open-loop rollouts: rounding parts as MuJoCo's own shadows do, a wrong model parts faster."""

import dataclasses

import numpy as np

from physics.load import load_model
from physics.parity import NumpySimulation, open_loop, random_states
from physics.parity.compare import Trial
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


def test_environments_count_until_their_contacts_part(monkeypatch):
  model = load("direct_solref")
  states = random_states(model, ENVIRONMENTS)
  path = np.repeat(states.qpos[None], 3, axis=0)
  found = np.ones((3, ENVIRONMENTS), bool)
  found[1, :4] = False
  monkeypatch.setattr(Trial, "alike", lambda *_: found.ravel())
  parted = open_loop._parted(model, states, path)
  np.testing.assert_array_equal(parted, [[False] * 16, *[[True] * 4 + [False] * 12] * 2])
  divergence = np.zeros((3, ENVIRONMENTS))
  divergence[1:, :9] = 1.0
  own = np.zeros_like(divergence)
  assert not open_loop._finding(divergence, own, ~np.zeros_like(parted)).holds
  assert open_loop._finding(divergence, own, ~parted).holds, "5 of 12 are too far"
  found[1, 4:12] = False
  parted = open_loop._parted(model, states, path)
  assert np.isinf(open_loop._finding(divergence, own, ~parted).bound).tolist() == [False, True, True]
