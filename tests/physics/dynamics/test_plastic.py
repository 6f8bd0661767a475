"""Plastic springs against MuJoCo under every integrator, and by hand."""

import mujoco
import numpy as np
import pytest
import torch

from physics.dynamics.plastic import plastic_joints, plastic_tendons, rest_position, rest_range
from physics.load import load_model
from physics.parity import MujocoSimulation, NumpySimulation
from physics.simulation import start_values
from tests.physics.conftest import load
from tests.physics.reports import assert_agrees

SLIDE = """<mujoco><option timestep="0.01" gravity="0 0 0"><flag spring="{spring}"/></option><worldbody>
  <body><joint type="{kind}" axis="0 1 0" stiffness="10" springyield="{limit}"/><geom size="0.1"/></body>
  </worldbody></mujoco>"""


@pytest.mark.parametrize("integrator", ["Euler", "RK4"])  # the file's is implicitfast: see test_parity.py
def test_steps_are_mujocos(integrator):
  assert "next plastic" in assert_agrees(load_model(load("plastic").mj, integrator=integrator), 24)


def test_springs_rest_at_first_where_mujocos_do():
  model = load("plastic")
  data = mujoco.MjData(model.mj)
  assert set(plastic_joints(model)) == {model.joint_id(name) for name in ("rail", "bend", "ball")}
  assert plastic_tendons(model) == [0, 1, 2]
  np.testing.assert_array_equal(model.plastic0, data.plastic)
  np.testing.assert_array_equal(rest_position(model, model.plastic0), model.qpos_spring)
  for tendon in range(model.ntendon):
    np.testing.assert_array_equal(
      rest_range(model, model.plastic0, tendon), model.tendon_lengthspring[tendon]
    )
  assert start_values(model).tolist()[model.nq + model.nv :][: model.nplastic] == model.plastic0.tolist()


@pytest.mark.parametrize("spring", ["enable", "disable"])
def test_springs_that_are_disabled_do_not_yield(spring):
  model = load_model(SLIDE.format(kind="slide", limit=0.1, spring=spring))
  engines = MujocoSimulation(model, 1), NumpySimulation(model, 1)
  for engine in engines:
    engine.qpos[:] = 0.5
    engine.step()
  expected, found = (float(engine.plastic[0, 0]) for engine in engines)
  assert found == pytest.approx(expected, rel=1e-12)
  assert (found == 0.0) == (spring == "disable")
  engines[1].reset()
  assert engines[1].plastic.tolist() == [[0.0]]


def test_key_frames_say_where_plastic_springs_rest():
  keys = '<keyframe><key name="bent" qpos="0.4" plastic="0.3"/><key name="new"/></keyframe></mujoco>'
  xml = SLIDE.format(kind="slide", limit=0.25, spring="enable").replace("</mujoco>", keys)
  model = load_model(xml)
  assert model.key_plastic.tolist() == [[0.3], model.plastic0.tolist()]
  simulation, data = NumpySimulation(model, 1), mujoco.MjData(model.mj)
  mujoco.mj_resetDataKeyframe(model.mj, data, model.key_id("bent"))
  for state, key in ((simulation.qpos, model.key_qpos), (simulation.plastic, model.key_plastic)):
    state[:] = torch.from_numpy(key[0].copy())
  for _ in range(50):
    mujoco.mj_step(model.mj, data)
    simulation.step()
  np.testing.assert_allclose(simulation.qpos[0], data.qpos, atol=1e-12)
  np.testing.assert_allclose(simulation.plastic[0], data.plastic, atol=1e-12)
