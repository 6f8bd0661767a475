"""Laws of physics, without MuJoCo: energy, momentum, weight, friction angle, a stack that stands."""

import mujoco
import numpy as np
import pytest
import torch

from physics.load import load_model
from physics.parity.compare import outputs
from physics.simulation import Simulation
from tests.physics.conftest import load

DOUBLE_PENDULUM = """<mujoco><option integrator="RK4" timestep="0.002"/><worldbody>
  <body><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.03"/>
    <body pos="0.5 0 0"><joint type="ball"/><geom type="capsule" fromto="0 0 0 0 0.1 -0.4" size="0.02"/>
  </body></body></worldbody></mujoco>"""
TUMBLING = """<mujoco><option integrator="RK4" timestep="0.002" gravity="0 0 0"/><worldbody><body><freejoint/>
  <inertial pos="0.1 0 0.05" mass="2" fullinertia="0.02 0.05 0.06 0.004 -0.003 0.002"/></body>
  </worldbody></mujoco>"""
ACROBAT = """<mujoco><option integrator="RK4" timestep="0.001"/><worldbody><body pos="0 0 9"><freejoint/>
  <geom type="capsule" size="0.1 0.2"/>
  <body pos="0.1 0.06 0"><joint name="arm" type="ball" stiffness="5" damping="0.1" range="0 1"/>
    <geom type="capsule" fromto="0.05 0 0 0.4 0 0" size="0.05"/></body>
  <body pos="0.1 -0.06 0"><joint name="leg" axis="1 0 1" range="-40 40" frictionloss="0.1"/>
    <geom type="capsule" fromto="0.05 0 0 0.4 0 0.1" size="0.06" condim="4"/></body></body></worldbody>
  <actuator><motor joint="leg" gear="3"/><position joint="arm" gear="1 2 3" kp="2"/></actuator></mujoco>"""


def simulation(xml, num_envs=1, vary=(), **state):
  """Return a simulation with parts of its state, or fields of its model, set."""
  sim = Simulation(load_model(xml, vary=vary), num_envs, threads=1, outputs=("cfrc_ext",))
  for name, values in state.items():
    getattr(sim, name)[:] = torch.tensor(values)
  return sim


def at(sim):
  """Return MuJoCo's data, energies and momenta included, in the state of a simulation."""
  mj = sim.model.mj
  data = mujoco.MjData(mj)
  data.qpos[:], data.qvel[:] = sim.qpos[0].numpy(), sim.qvel[0].numpy()
  mujoco.mj_forward(mj, data)
  mujoco.mj_energyPos(mj, data)
  mujoco.mj_energyVel(mj, data)
  mujoco.mj_subtreeVel(mj, data)
  return data


def test_undamped_pendulum_keeps_its_energy():
  sim = simulation(DOUBLE_PENDULUM, qvel=[3.0, 1.0, -5.0, 2.0])
  start = at(sim).energy.sum()
  for _ in range(10):
    sim.step(250)
    data = at(sim)
    assert data.energy.sum() == pytest.approx(start, abs=1e-4 * data.energy[1])


def test_tumbling_body_keeps_energy_and_angular_momentum():
  sim = simulation(TUMBLING, qvel=[0.3, -0.2, 0.1, 8.0, 0.5, -3.0])
  start = at(sim)
  for _ in range(10):
    sim.step(500)
    data = at(sim)
    assert data.energy[1] == pytest.approx(start.energy[1], rel=1e-4)
    size = np.linalg.norm(start.subtree_angmom[1])
    np.testing.assert_allclose(data.subtree_angmom[1], start.subtree_angmom[1], atol=1e-4 * size)
  assert np.abs(data.qvel[3:] - start.qvel[3:]).max() > 1  # it does tumble


def test_forces_within_a_falling_body_move_its_momentum_by_nothing():
  """Motors, springs, limits, friction and contacts between its limbs all come in pairs."""
  sim = simulation(ACROBAT, qvel=[1.0, 0.5, 2.0, 1.0, 2.0, 3.0, -5.0, 2.0, 1.0, 4.0], ctrl=[1.0, 0.5])
  start, contacts = at(sim), 0
  mass, spin = start.subtree_linvel[1].copy(), np.linalg.norm(start.subtree_angmom[1])
  for step in range(1, 11):
    sim.step(100)
    data = at(sim)
    contacts += data.ncon
    fallen = mass + sim.model.gravity * 0.1 * step
    np.testing.assert_allclose(data.subtree_linvel[1], fallen, atol=1e-4)
    np.testing.assert_allclose(data.subtree_angmom[1], start.subtree_angmom[1], atol=2e-3 * spin)
  assert contacts > 0


@pytest.mark.parametrize(
  "name",
  [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in ("assets/ant", "assets/quadruped")],
)
def test_contacts_of_a_robot_at_rest_carry_its_weight(name):
  model = load(name)
  sim = Simulation(model, 1, threads=1, outputs=outputs(model))  # as in test_descent
  for _ in range(10):
    sim.step(int(0.5 / model.timestep))
  assert sim.qvel.abs().max() < 1e-3
  weight = -model.body_mass.sum() * model.gravity[2]
  np.testing.assert_allclose(sim.cfrc_ext[0, 1:, 3:].sum(0), [0, 0, weight], atol=1e-3 * weight)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_box_on_a_slope_slips_beyond_the_friction_angle(cone):
  """Friction 0.5 holds up to a slope of 0.5; beyond, the excess accelerates the box."""
  tilts = np.arctan([0.48, 0.52])
  along, down = 9.81 * np.sin(tilts), 9.81 * np.cos(tilts)
  sim = simulation(
    f"""<mujoco><option timestep="0.002" cone="{cone}" impratio="100"/><worldbody>
    <geom type="plane" size="0 0 1" friction="0.5"/><body pos="0 0 0.1"><freejoint/>
    <geom type="box" size="0.2 0.2 0.1" friction="0.5"/></body></worldbody></mujoco>""",
    num_envs=2,
    vary=["gravity"],
    gravity=np.stack([along, 0 * along, -down], axis=1),
  )
  sim.step(250)
  settled = sim.qvel[:, 0].clone()
  sim.step(500)
  acceleration = sim.qvel[:, 0] - settled
  np.testing.assert_allclose(acceleration, np.maximum(0.0, along - 0.5 * down), atol=0.01)
  assert (settled < 0.01).tolist() == [True, False]


def test_stack_of_three_boxes_stands_for_ten_seconds():
  boxes = "".join(
    f'<body pos="0 0 {z}"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'
    for z in (0.1, 0.3, 0.5)
  )
  sim = simulation(f'<mujoco><worldbody><geom type="plane" size="0 0 1"/>{boxes}</worldbody></mujoco>')
  sim.step(1000)
  settled = sim.qpos.clone()
  sim.step(4000)
  assert (sim.qpos - settled).abs().max() < 1e-3
  np.testing.assert_allclose(sim.qpos[0].reshape(3, 7)[:, 2], [0.1, 0.3, 0.5], atol=0.01)
  assert sim.qvel.abs().max() < 1e-2
