"""DC motors against MuJoCo, feature by feature and together, and their laws by hand."""

import numpy as np
import pytest

from physics.actuator.motor import is_beyond, limited, mean_exponential
from tests.physics.oracle import evaluate
from tests.physics.rig import assert_actuates_as_mujoco, assert_moves_as_mujoco, machine

FEATURES = {
  "voltage": "",
  "inductance": 'inductance="0.01"',
  "current rate": 'inductance="0.01" saturation="0 0 100"',
  "torque": 'saturation="0.02 0 0"',
  "heat": 'thermal="2 3 0 0.004 25 20"',
  "heat of a current": 'inductance="0.01" thermal="2 3 0 0.004 25 20"',
  "cogging": 'cogging="0.1 6 0.2"',
  "friction": 'lugre="10 0.1 0.1 0.2 0.05"',
  "friction of a weak motor": 'lugre="10 0.1 0.1 0.2 0.05" saturation="0.01 0 0"',
  "position": 'input="pos" controller="1 2 3 0 0 0"',
  "velocity": 'input="vel" controller="0 0 3 0.1 0 1"',
  "torque input": 'input="ff" controller="0 0 0 3 0 0"',
  "all inputs": 'input="pos vel ff voltage" controller="1 2 3 4 0.5 6"',
  "current control": 'inductance="0.01" input="pos vel" controller="1 0 0.3 0 0 0"',
  "no input": 'input="none" lugre="10 0.1 0.1 0.2 0.05"',
  "everything": """inductance="0.01" thermal="2 3 0 0.004 25 20" saturation="1 0 100" cogging="0.1 6 0.2"
    lugre="10 0.1 0.1 0.2 0.05" input="pos vel ff voltage" controller="1 2 3 4 5 6" """,
}


def motors(features, integrator="Euler", **parts):
  motor = '<dcmotor joint="hinge" resistance="1.5" motorconst="0.3" damping="0.1" {}/>'
  return machine("".join(motor.format(FEATURES[feature]) for feature in features), integrator, **parts)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_torques_rates_and_motion_with_every_feature_are_mujocos(integrator):
  model = motors(FEATURES, integrator)
  for scale in (1.0, 20.0):
    assert_actuates_as_mujoco(model, scale)
  assert_moves_as_mujoco(model)


def test_friction_counts_as_damping_below_the_limit_of_the_joint_only():
  for span in ("-0.1 0.1", "-9 9"):
    assert_moves_as_mujoco(
      motors(["friction"], "implicitfast", hinge=f'actuatorfrcrange="{span}"'), scale=5.0
    )


def test_a_motor_without_constant_is_a_brake_of_friction_alone():
  brake = '<dcmotor joint="hinge" resistance="1" motorconst="0" input="none" lugre="10 0.1 0.1 0.2 0.05"/>'
  assert_actuates_as_mujoco(machine(brake))


def test_a_limit_of_zero_is_none():
  assert [limited(value, 2.0) for value in (-3.0, 1.0, 3.0)] == [-2.0, 1.0, 2.0]
  assert [is_beyond(value, 2.0) for value in (-3.0, 1.0, 3.0)] == [True, False, True]
  assert (limited(3.0, 0.0), is_beyond(3.0, 0.0)) == (3.0, False)


def test_the_mean_exponential_is_precise_everywhere():
  x = np.concatenate([-np.logspace(-18, 3, 200), [0.0], np.logspace(-18, 1, 200)])
  expected = np.where(x == 0, 1.0, np.expm1(x) / np.where(x == 0, 1.0, x))
  (found,) = evaluate(lambda _program, value: [mean_exponential(value)], x)
  np.testing.assert_allclose(found, expected, rtol=1e-13)
