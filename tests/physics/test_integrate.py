"""One time step on plain numbers, against MuJoCo."""

import dataclasses

import mujoco
import numpy as np
import pytest

from physics.integrate import integrate_position
from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from physics.parity.reference import converged, reference, relative_error
from physics.state.layout import Layout
from physics.step import trace_step
from physics.trace.emit_numpy import numpy_function
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at


def test_what_stands_still_stays_and_quaternions_become_unit():
  model = load("self_contact")
  qpos = [*model.qpos0[:3], 0.0, 0.0, 3.0, 4.0, *[0.1] * (model.nq - 7)]
  found = integrate_position(model, [float(x) for x in qpos], [0.0] * model.nv)
  np.testing.assert_allclose(found, [*qpos[:3], 0, 0, 0.6, 0.8, *qpos[7:]], atol=1e-15)


def test_spinning_a_full_turn_comes_back():
  model = load("free_bodies")
  qpos, qvel = model.qpos0.tolist(), [0.0] * model.nv
  joint = int(np.flatnonzero(model.jnt_type == 0)[0])
  at, dof = int(model.jnt_qposadr[joint]) + 3, int(model.jnt_dofadr[joint]) + 3
  steps = 64
  qvel[dof : dof + 3] = [
    0.0,
    0.6 * 2 * np.pi / (steps * model.timestep),
    0.8 * 2 * np.pi / (steps * model.timestep),
  ]
  half = None
  for step in range(steps):
    half = qpos[at : at + 4] if step == steps // 2 else half
    qpos = integrate_position(model, qpos, qvel)
  np.testing.assert_allclose(np.abs(qpos[at : at + 4]), np.abs(model.qpos0[at : at + 4]), atol=1e-12)
  assert abs(np.dot(half, qpos[at : at + 4])) < 1e-12


def one_step(model, qpos, qvel, ctrl):
  """Return (qpos, qvel) after one time step of the traced program in float64."""
  layout = Layout(model, ())
  memory = np.zeros((layout.rows, 1))
  for name, value in (("qpos", qpos), ("qvel", qvel), ("mask", [1.0])):
    start = layout.blocks[name].start
    memory[start : start + len(value), 0] = value
  controls = {"control": np.array(ctrl)[:, None]} if model.nu else {}
  numpy_function(trace_step(model, layout))(1, 0, 1, state=memory, **controls)
  return memory[: model.nq, 0], memory[model.nq : model.nq + model.nv, 0]


def test_without_eulerdamp_damping_is_explicit():
  model = dataclasses.replace(load("springs"), eulerdamp=False)
  assert model.dof_damping.any()
  states = random_states(model, 1)
  data = mujoco_at(model, states.qpos[0], states.qvel[0])
  _, qvel = one_step(model, states.qpos[0], states.qvel[0], states.ctrl[0])
  np.testing.assert_allclose(qvel, states.qvel[0] + model.timestep * data.qacc, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("speed", [10.0, 60.0, 150.0, 250.0])
def test_runge_kutta_turns_fast_bodies_as_mujoco_does(speed):
  """Up to 2.5 rad in a time step."""
  model = load_model("""<mujoco><option timestep="0.01" integrator="RK4"/><worldbody><body><freejoint/>
    <geom type="box" size="0.1 0.2 0.3"/></body></worldbody></mujoco>""")
  qvel = np.array([0.0, 0.0, 0.0, 0.6, -0.5, 0.4]) * speed
  data = mujoco.MjData(model.mj)
  data.qvel[:] = qvel
  mujoco.mj_step(model.mj, data)
  found, _ = one_step(model, model.qpos0, qvel, [])
  np.testing.assert_allclose(found, data.qpos, atol=1e-12)


def test_no_moment_of_inertia_is_too_small_to_count():
  """A needle has 2e-14 kg m^2 about its axis, which counted as rounding of zero: `qvel` was off by 8e-5."""
  model = load_model("""<mujoco><worldbody><body><freejoint/>
    <geom type="capsule" size="0.0002 2" mass="1e-6" quat=".8 .2 .3 .4"/></body></worldbody></mujoco>""")
  data = mujoco.MjData(model.mj)
  data.qvel[3:] = qvel = 0.6, -0.5, 2.0
  mujoco.mj_step(model.mj, data)
  _, found = one_step(model, model.qpos0, [0.0, 0.0, 0.0, *qvel], [])
  np.testing.assert_allclose(found, data.qvel, rtol=0, atol=1e-9)


LINK = (
  "<joint axis='0 {} {}' damping='.05'/><geom type='capsule' fromto='0 0 0 .1 0 0' size='.02' contype='0'/>"
)
CHAIN = "".join(f"<body pos='{0.1 if i else 0} 0 0'>{LINK.format(i % 2, 1 - i % 2)}" for i in range(45))
TURNED = "<body><freejoint/><geom type='capsule' size='.002 .5' mass='8e-5' quat='.8 .2 .3 .4'/></body>"
UNEVEN = "<body><freejoint/><geom type='box' size='.02 .02 .02' pos='.1 0 0'/></body>"


@pytest.mark.parametrize(
  ("bodies", "integrator", "bound"),
  [
    (CHAIN + "</body>" * 45, "Euler", 1e-5),
    (CHAIN + "</body>" * 45, "implicitfast", 1e-5),
    (TURNED, "implicitfast", 5e-8),
    (UNEVEN, "implicitfast", 5e-8),
  ],
  ids=["chain", "chain-fast", "needle", "uneven"],
)
def test_float32_keeps_the_digits_of_a_damped_step(bodies, integrator, bound):
  """Medians were 8e-5 for the chain, 1.7e-7 for the needle and 1.1e-7 for the uneven object."""
  model = load_model(f"<mujoco><option integrator='{integrator}'/><worldbody>{bodies}</worldbody></mujoco>")
  states = random_states(converged(model), 32)
  for dtype, most in ((np.float64, 1e-9), (np.float32, bound)):
    simulation = NumpySimulation(converged(model), 32, (), dtype)
    states.write_to(simulation)
    simulation.step()
    error = relative_error(simulation.qvel.numpy().astype(float), reference(model, states).qvel)
    assert np.median(error) < most
