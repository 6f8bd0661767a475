"""States to compare on: a mixture, all numbers of float32, and those of trajectories."""

import mujoco
import numpy as np
import torch

from physics.load import load_model
from physics.parity import MujocoSimulation, NumpySimulation, random_states, recorded_states
from physics.parity.contacts import DISTANCE, mujoco_contacts
from physics.parity.states import DEEP
from physics.state.delay import delayed_controls
from tests.physics.conftest import GYMNASIUM, load


def ant():
  return load_model(GYMNASIUM / "ant.xml", integrator="Euler")


def test_states_are_a_mixture_of_float32_numbers():
  model = ant()
  states = random_states(model, 64)
  again = random_states(model, 64)
  simulation = MujocoSimulation(model, 64)
  for name in ("qpos", "qvel", "ctrl"):
    values = getattr(states, name)
    np.testing.assert_array_equal(values, values.astype(np.float32))
    np.testing.assert_array_equal(values, getattr(again, name))
    getattr(simulation, name)[:] = torch.from_numpy(values)
  simulation.forward()
  assert 0.2 < (simulation.contact_count > 0).double().mean() < 0.9
  beyond = (states.qpos[:, 7:] < model.jnt_range[1:, 0]) | (states.qpos[:, 7:] > model.jnt_range[1:, 1])
  assert 0.2 < beyond.any(axis=1).mean() < 0.95
  assert len(np.unique(states.qpos[:, 2])) == len(states) == 64


def test_recorded_states_follow_each_other():
  model = load("self_contact")
  states = recorded_states(model, 40, steps=20)
  data = mujoco.MjData(model.mj)
  assert len(states) == 40
  for index in [i for i in range(39) if i % 20 != 19]:
    states.load(index, data)
    mujoco.mj_step(model.mj, data)
    np.testing.assert_allclose(data.qpos, states.qpos[index + 1], atol=1e-6)
    np.testing.assert_allclose(data.qacc_warmstart, states.qacc_warmstart[index + 1], rtol=1e-2, atol=1e-2)
  assert np.abs(states.qpos[20] - states.qpos[19]).max() > 0.01


def test_controls_that_act_later_go_along():
  model = load("drives")
  states, simulation = recorded_states(model, 20, steps=20), NumpySimulation(model, 20)
  states.write_to(simulation)
  row = 0
  for control, actuator in delayed_controls(model).items():
    count = model.actuator_history[actuator, 0]
    given = [states.ctrl[k - count : k, control] for k in range(count, 20)]
    np.testing.assert_allclose(simulation.past_ctrl[count:, row : row + count], given, rtol=1e-6)
    row += count
  assert row == simulation.past_ctrl.shape[1] == 14


def test_states_that_cannot_be_rolled_out_stay_where_they_were_drawn():
  """A pendulum that gains energy runs away at once: its states are those before the rollout."""
  model = load_model("""<mujoco><worldbody>
    <body><joint name="j" axis="0 1 0"/><geom size="0.1" pos="0 0 1"/></body></worldbody>
    <actuator><velocity joint="j" kv="-1000"/></actuator></mujoco>""")
  states = random_states(model, 16)
  assert np.isfinite(states.qvel).all()
  assert np.abs(states.qvel).max() < 10


CROWD = """<mujoco><worldbody><geom type="cylinder" size=".3 .3"/>
  <body pos=".5 0 0"><joint name="x" type="slide" axis="1 0 0" range="-.5 .5"/>
    <geom type="{}" size=".1 .3"/></body></worldbody>
  <actuator><motor joint="x" ctrlrange="-9 9"/></actuator></mujoco>"""


def deepest(model, states):
  """Return the greatest overlap [m] in each state."""
  return np.array([-rows[:, DISTANCE].min(initial=0.0) for rows in mujoco_contacts(model.mj, states)])


def test_ranges_without_end_are_none():
  """Limits of 1e16 rad, as a rotor has in a URDF: MuJoCo resets positions beyond 1e10."""
  rotor = '<body><joint axis="0 0 1" range="-1e16 1e16"/><geom size="0.1"/></body>'
  model = load_model(f'<mujoco><compiler angle="radian"/><worldbody>{rotor}</worldbody></mujoco>')
  assert model.jnt_limited.all()
  assert np.abs(random_states(model, 16).qpos).max() < 10.0


def test_searched_shapes_hardly_overlap_deeply():
  model, formula = load_model(CROWD.format("cylinder")), load_model(CROWD.format("sphere"))
  assert deepest(model, random_states(model, 32)).max() <= DEEP
  assert deepest(model, recorded_states(model, 32)).max() <= DEEP
  assert deepest(formula, random_states(formula, 32)).max() > 0.1
