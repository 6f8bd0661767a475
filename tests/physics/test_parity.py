"""The engine against MuJoCo C: in float64 without compilation, then as a float32 kernel; and the means."""

import dataclasses

import mujoco
import numpy as np
import pytest
import torch

from physics import solver
from physics.emit import numpy_function
from physics.load import load_model
from physics.parity import (
  MujocoSimulation,
  States,
  converging,
  full_mass_matrix,
  one_ulp_effect,
  random_states,
  relative_error,
)
from physics.step import trace_step
from tests.physics.conftest import COMPARED, GYMNASIUM, NUM_STATES, OUTPUTS

EXACT = 1e-9  # float64, relative to the larger of 1 and the reference's magnitude
SMOOTH = 1e-5  # float32, fields that no constraint enters
LOOSE = 1e-4  # float32, accelerations of 95 % of the states


@pytest.fixture(scope="module")
def oracle(case):
  """Return the traced program as a float64 NumPy function of (integrate) that returns the state memory."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(solver, "TOLERANCE", 1e-13)  # the solver's own is what float32 resolves
    run = numpy_function(trace_step(case.model, case.layout))

  def memory(integrate):
    state = case.memory()
    control = {"control": case.states.ctrl.T.copy()} if case.model.nu else {}
    with np.errstate(all="ignore"):
      run(1, 0, integrate, state=state, **control)
    return state

  return memory


def test_traced_program_is_mujocos_mathematics(case, oracle):
  memory = oracle(integrate=0)
  for name in COMPARED:
    error = relative_error(case.field(memory, name), getattr(case.expected, name))
    assert error.max() < EXACT, f"{name} of states {np.flatnonzero(error > EXACT)}: {error.max():.1e}"


def test_traced_step_is_mujocos(case, oracle):
  memory = oracle(integrate=1)
  for name in ("qpos", "qvel"):
    error = relative_error(case.field(memory, name), getattr(case.expected, name))
    assert error.max() < EXACT, f"{name} of states {np.flatnonzero(error > EXACT)}: {error.max():.1e}"


def test_traced_contact_forces_and_poses_are_mujocos(case, oracle):
  memory = oracle(integrate=0)
  model = dataclasses.replace(case.model, mj=converging(case.model.mj))
  expected = MujocoSimulation(model, NUM_STATES, outputs=("xpos", "xquat", "cfrc_ext"))
  for name in ("qpos", "qvel", "ctrl"):
    getattr(expected, name)[:] = torch.from_numpy(getattr(case.states, name))
  expected.forward()
  moving = case.model.body_treeid >= 0  # forces on what stands still are not computed
  for name in ("xpos", "xquat", "cfrc_ext"):
    error = relative_error(case.field(memory, name)[:, moving], getattr(expected, name).numpy()[:, moving])
    assert error.max() < EXACT, f"{name} of states {np.flatnonzero(error > EXACT)}: {error.max():.1e}"


def test_kernel_agrees_within_rounding(case):
  simulation = case.start()
  simulation.forward()
  assert simulation.overflow.max() == 0
  for name in ("qM", "qfrc_bias"):
    assert relative_error(getattr(simulation, name).numpy(), getattr(case.expected, name)).max() < SMOOTH, (
      name
    )
  for name in ("qacc_smooth", "qacc"):
    assert_within_rounding(case, simulation, name)


def test_kernel_step_agrees_within_rounding(case):
  simulation = case.start()
  simulation.step()
  for name in ("qpos", "qvel"):
    assert_within_rounding(case, simulation, name)


def assert_within_rounding(case, simulation, name):
  """Bound every state by three times what one ulp does to MuJoCo, and 95 % of the states by LOOSE.

  Models that are difficult on purpose (stiff, or deep in contact at the end of long chains) get twice that,
  and 95 % of their states may be as far off as one ulp brings those of MuJoCo.
  """
  error = relative_error(getattr(simulation, name).numpy(), getattr(case.expected, name))
  rounding = getattr(case.rounding, name)
  slack, typical = (1, LOOSE) if case.is_robot else (2, max(LOOSE, np.quantile(rounding, 0.95)))
  bound = slack * np.maximum(LOOSE, 3 * rounding)
  assert (error < bound).all(), f"{name} of states {np.flatnonzero(error >= bound)}: {error.max():.1e}"
  assert np.quantile(error, 0.95) < typical, f"{name}: {np.quantile(error, [0.5, 0.9, 0.95])}"


def ant():
  return load_model(GYMNASIUM / "ant.xml", integrator="Euler")


def test_reference_simulation_is_mujoco():
  model = ant()
  states = random_states(model, 3, seed=5)
  simulation = MujocoSimulation(model, 3, outputs=(*OUTPUTS[:7],))
  for name in ("qpos", "qvel", "ctrl"):
    getattr(simulation, name)[:] = torch.from_numpy(getattr(states, name))
  simulation.step(4)
  for env in range(3):
    data = mujoco.MjData(model.mj)
    data.qpos[:], data.qvel[:], data.ctrl[:] = states.qpos[env], states.qvel[env], states.ctrl[env]
    mujoco.mj_step(model.mj, data, 4)
    mujoco.mj_rnePostConstraint(model.mj, data)
    for name in ("qpos", "qvel", "qacc", "qacc_warmstart", "xpos", "xquat", "cfrc_ext", "qfrc_bias"):
      np.testing.assert_array_equal(getattr(simulation, name)[env], getattr(data, name), err_msg=name)
    np.testing.assert_array_equal(simulation.qM[env], full_mass_matrix(model.mj, data))
    assert simulation.contact_count[env] == sum(contact.exclude == 0 for contact in data.contact)
    assert simulation.solver_niter[env] == data.solver_niter[0]


def test_reference_simulation_holds_the_contract():
  simulation = MujocoSimulation(ant(), 3)
  views = {
    name: getattr(simulation, name) for name in ("qpos", "qvel", "ctrl", "qacc_warmstart", "qacc", "xpos")
  }
  start = simulation.get_state()
  controls = torch.rand(3, 5, simulation.model.nu, dtype=torch.float64)
  simulation.step(5, controls)
  assert simulation.ctrl.equal(controls[:, -1])
  once = simulation.get_state()
  simulation.set_state(start)
  for substep in range(5):
    simulation.step(ctrl=controls[:, substep : substep + 1])
  assert simulation.get_state().equal(once)
  simulation.reset(torch.tensor([False, True, False]))
  assert simulation.get_state()[1].equal(start[1])
  assert simulation.get_state()[::2].equal(once[::2])
  height = simulation.xpos[:, 1, 2].clone()
  simulation.qpos[:, 2] += 1.0
  simulation.forward(torch.tensor([True, False, False]))
  assert (simulation.xpos[:, 1, 2] > height + 0.5).tolist() == [True, False, False]
  assert all(getattr(simulation, name) is view for name, view in views.items())


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


def test_relative_error_is_per_state_and_absolute_below_one():
  expected = np.array([[0.0, 0.5], [100.0, -200.0]])
  np.testing.assert_allclose(
    relative_error(expected + np.array([[0.1, 0.0], [1.0, 4.0]]), expected), [0.1, 0.02]
  )


def test_one_ulp_shows_where_rounding_matters():
  """An inverted pendulum feels one ulp by about one ulp; where it leans on a stiff limit, a hundredfold."""
  model = load_model("""<mujoco><worldbody><body><joint axis="0 1 0" range="-30 30"/>
    <geom type="capsule" fromto="0 0 0 0 0 1" size="0.1"/></body></worldbody></mujoco>""")
  angles = np.array([[0.3], [np.deg2rad(30) + 1e-4]], dtype=np.float32).astype(float)
  effect = one_ulp_effect(model, States(angles, np.zeros((2, 1)), np.zeros((2, 0)))).qacc
  assert 1e-8 < effect[0] < 1e-6
  assert 1e-5 < effect[1] < 1e-3
