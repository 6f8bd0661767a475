"""Actuator forces on plain numbers, against MuJoCo and by hand."""

import numpy as np
import pytest

from physics.actuation import actuator_forces
from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at


@pytest.mark.parametrize("name", ["actuators", "gymnasium/ant"])
@pytest.mark.parametrize("gain", [0.1, 1.0, 50.0])
def test_forces_are_mujocos_within_and_beyond_all_limits(name, gain):
  model = load(name)
  states = random_states(model, 6, seed=int(gain))
  for qpos, qvel, ctrl in zip(states.qpos, states.qvel, gain * states.ctrl, strict=True):
    expected = mujoco_at(model, qpos, qvel, ctrl).qfrc_actuator
    found = actuator_forces(model, qpos.tolist(), qvel.tolist(), ctrl.tolist())
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def servo(joint="", actuator=""):
  return load_model(f"""<mujoco><worldbody>
    <body><joint name="slide" type="slide" {joint}/><geom size="1"/></body></worldbody>
    <actuator><general joint="slide" gear="2" gaintype="affine" gainprm="3 1 0.5" biastype="affine"
      biasprm="1 -4 -0.25" {actuator}/></actuator></mujoco>""")


def test_gain_and_bias_are_affine_in_length_and_velocity():
  length, velocity = 2 * 0.25, 2 * 0.5
  force = (3 + length + 0.5 * velocity) * 0.8 + 1 - 4 * length - 0.25 * velocity
  assert actuator_forces(servo(), [0.25], [0.5], [0.8]) == [pytest.approx(2 * force)]


@pytest.mark.parametrize(
  ("joint", "actuator", "ctrl", "force"),
  [
    ("", 'ctrlrange="-1 1"', 9.0, 2 * (3 + 1)),
    ("", 'forcerange="-2 3"', 9.0, 2 * 3),
    ("", 'forcerange="-2 3"', -9.0, 2 * -2),
    ('actuatorfrcrange="-5 5"', "", 9.0, 5),
    ('actuatorfrcrange="-5 5"', 'ctrlrange="-1 1" forcerange="-2 3"', -9.0, -4),
  ],
)
def test_limits_apply_to_control_then_force_then_joint(joint, actuator, ctrl, force):
  assert actuator_forces(servo(joint, actuator), [0.0], [0.0], [ctrl]) == [force]


def test_actuators_of_one_joint_add_up():
  model = load_model("""<mujoco><worldbody>
    <body><joint name="hinge"/><geom size="1"/></body><body><joint/><geom size="1"/></body></worldbody>
    <actuator><motor joint="hinge" gear="2"/><motor joint="hinge" gear="-3"/></actuator></mujoco>""")
  assert actuator_forces(model, [0.0, 0.0], [0.0, 0.0], [1.0, 0.5]) == [0.5, 0.0]
