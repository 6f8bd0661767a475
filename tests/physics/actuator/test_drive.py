"""Servos, filters and PID controllers against MuJoCo, and their laws by hand."""

import numpy as np
import pytest
import torch

from physics.actuator.drive import held_error, nearest_turn
from physics.load import load_model
from physics.parity import NumpySimulation
from tests.physics.rig import assert_actuates_as_mujoco, assert_moves_as_mujoco, machine

AFFINE = 'gaintype="affine" gainprm="1 2 -1" biastype="affine" biasprm="1 -2 -3"'
PID = 'joint="hinge" gear="0.5" kp="2" kv="0.3"'
EARLY = AFFINE + ' actearly="true"'
DRIVES = {
  "motor": '<motor joint="hinge" gear="3" ctrlrange="-0.5 0.5"/>',
  "damper": '<damper joint="slide" kv="3" ctrlrange="0 1"/>',
  "position": '<position joint="hinge" kp="30" kv="2" forcerange="-6 3" gear="-0.7"/>',
  "velocity": '<velocity joint="slide" kv="20"/>',
  "affine": f'<general joint="slide" {AFFINE} ctrlrange="-0.5 0.5"/>',
  "bias of no use": '<general joint="slide" gainprm="3 4 5" biasprm="1 2 3"/>',
  "integrator": f'<general joint="hinge" dyntype="integrator" {AFFINE} actrange="-1 1"/>',
  "integrator, early": f'<general joint="hinge" dyntype="integrator" {EARLY} actrange="-1 1"/>',
  "filter": f'<general joint="slide" dyntype="filter" dynprm="0.03" {AFFINE}/>',
  "filter, early": f'<general joint="slide" dyntype="filter" dynprm="0.03" {EARLY}/>',
  "exact filter": f'<general joint="slide" dyntype="filterexact" dynprm="0.03" {AFFINE} actrange="-0.5 2"/>',
  "exact filter, early": f'<general joint="slide" dyntype="filterexact" dynprm="0.01" {EARLY}/>',
  "slow position": '<position joint="hinge" kp="3" timeconst="0.1"/>',
  "cylinder": '<cylinder joint="slide" timeconst="0.2" area="3" bias="1 2 -3"/>',
  "servo on a circle": '<position joint="ball" gear="0.1 0.2 0.3" kp="4" kv="0.1"/>',
  "filtered servo on a circle": '<position joint="ball" gear="0.1 0.2 0.3" kp="4" timeconst="0.05"/>',
  "early servo on a circle": """<general joint="ball" gear="0.4" dyntype="filter" dynprm="0.05"
    actearly="true" gainprm="4" biastype="affine" biasprm="0 -4 -0.1" actrange="-1 1"/>""",
  "integrating servo on a circle": '<intvelocity site="left" refsite="right" gear="0 0 0 0.1 0.2 0" kp="3"/>',
  "servo that is none": '<general joint="ball" gear="0.1" gainprm="2" biastype="affine" biasprm="0 -3 0"/>',
  "pid": f"<pid {PID}/>",
  "pid with all": f'<pid {PID} ki="4" imax="0.5" slewmax="3" input="pos vel ff" forcerange="-3 3"/>',
  "pid that does not slew": f'<pid {PID} ki="4" input="pos ff" posrange="-1 1" ffrange="-1 1"/>',
  "pid of velocity": f'<pid {PID} input="vel"/>',
  "pid of force": f'<pid {PID} input="ff"/>',
  "pid on a circle": '<pid joint="ball" gear="0.1 0.2 0.3" kp="2" kv="0.3" ki="4" imax="0.5" slewmax="9"/>',
  "pid in a range, early": """<general joint="slide" gaintype="pid" dyntype="pid" dynprm="0.5 3" gainprm="4"
    biastype="affine" biasprm="1 -2 -0.3" actrange="-0.2 0.3" actearly="true"/>""",
}


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_forces_rates_and_motion_of_all_drives_are_mujocos(integrator):
  model = machine("".join(DRIVES.values()), integrator)
  for scale in (1.0, 20.0):
    assert_actuates_as_mujoco(model, scale)
  assert_moves_as_mujoco(model)


def test_an_exact_filter_without_time_constant_follows_at_once():
  assert_moves_as_mujoco(machine('<general joint="slide" dyntype="filterexact" dynprm="0"/>'))


def test_a_setpoint_moves_by_whole_turns_to_the_length():
  assert nearest_turn(7.0, 0.5, 2.0) == 1.0
  assert nearest_turn(-7.0, 0.9, 2.0) == 1.0
  assert nearest_turn(1.2, 0.5, 2.0) == 1.2
  assert nearest_turn(7.0, 0.5, 0.0) == 7.0


@pytest.mark.parametrize(
  ("error", "integral", "limit", "held"),
  [
    (1.0, 0.5, 2.0, 1.0),
    (1.0, 2.0, 2.0, 0.0),
    (-1.0, 2.5, 2.0, -1.0),
    (-1.0, -2.0, 2.0, 0.0),
    (1.0, 9.0, 0.0, 1.0),
  ],
)
def test_an_integral_at_its_limit_does_not_wind_up(error, integral, limit, held):
  assert held_error(error, integral, limit) == held


def test_float32_keeps_the_small_force_of_a_stiff_servo_at_its_setpoint():
  """The products of a large gain with setpoint and position are larger than their difference."""
  model = load_model("""<mujoco><worldbody><body><joint name="j" type="slide"/><geom size="0.1"/></body>
    </worldbody><actuator><position joint="j" kp="5000"/></actuator></mujoco>""")
  simulation = NumpySimulation(model, 64, ("actuator_force",), np.float32)
  position, error = np.random.default_rng(0).uniform([1, -1e-4], [2, 1e-4], (64, 2)).T
  simulation.qpos[:, 0] = torch.from_numpy(position)
  simulation.ctrl[:, 0] = torch.from_numpy(position + error)
  simulation.forward()
  expected = 5000 * (simulation.ctrl.double() - simulation.qpos.double())
  np.testing.assert_allclose(simulation.actuator_force.numpy(), expected, rtol=1e-6)
