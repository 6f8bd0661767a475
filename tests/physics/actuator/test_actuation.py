"""Actuators together: limits, groups and gravity compensation, against MuJoCo and by hand."""

import numpy as np
import pytest

from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import load
from tests.physics.oracle import mujoco_at, smooth_of
from tests.physics.rig import assert_actuates_as_mujoco, assert_moves_as_mujoco, machine, moments

PULLS = '<velocity tendon="cord" kv="3"/><motor tendon="cord" gear="2"/><velocity joint="slide" kv="2"/>'


def joint_forces(model, qpos, qvel, ctrl):
  """Return what the actuators do to the joints [nv]."""
  return smooth_of(model, mujoco_at(model, qpos, qvel, ctrl)).actuated.qfrc


@pytest.mark.parametrize("name", ["actuators", "gymnasium/ant"])
@pytest.mark.parametrize("gain", [0.1, 50.0])
def test_forces_are_mujocos_within_and_beyond_all_limits(name, gain):
  model = load(name)
  states = random_states(model, 6, seed=int(gain))
  for qpos, qvel, ctrl in zip(states.qpos, states.qvel, gain * states.ctrl, strict=True):
    expected = mujoco_at(model, qpos, qvel, ctrl).qfrc_actuator
    np.testing.assert_allclose(joint_forces(model, qpos, qvel, ctrl), expected, rtol=1e-12, atol=1e-12)


def servo(joint="", actuator=""):
  return load_model(f"""<mujoco><worldbody>
    <body><joint name="slide" type="slide" {joint}/><geom size="1"/></body></worldbody>
    <actuator><general joint="slide" gear="2" gaintype="affine" gainprm="3 1 0.5" biastype="affine"
      biasprm="1 -4 -0.25" {actuator}/></actuator></mujoco>""")


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
  assert joint_forces(servo(joint, actuator), [0.0], [0.0], [ctrl]) == [force]


@pytest.mark.parametrize("span", ["-0.5 0.25", "0 0.5", "-50 50"])
def test_a_tendon_limits_the_sum_of_forces_on_it(span):
  model = machine(PULLS, cord=f'actuatorfrcrange="{span}"')
  assert_actuates_as_mujoco(model, scale=3.0)
  assert_moves_as_mujoco(model, scale=3.0)


@pytest.mark.parametrize("gravity", [{}, {"flag": 'gravity="disable"'}])
def test_gravity_compensation_through_actuators_counts_towards_the_limit_of_the_joint(gravity):
  joints = {"slide": 'actuatorgravcomp="true" actuatorfrcrange="-20 20"', "hinge": 'actuatorgravcomp="true"'}
  assert_actuates_as_mujoco(machine(PULLS, **joints, **gravity), scale=9.0)
  assert_moves_as_mujoco(machine(PULLS, "implicitfast", **joints, **gravity), scale=9.0)


def test_nobody_compensates_without_actuators():
  model = machine("", slide='actuatorgravcomp="true"')
  (data,) = moments(model, 1)
  assert not np.any(data.qfrc_actuator)
  assert smooth_of(model, data).actuated.qfrc == [0.0] * model.nv


def test_disabled_actuators_rest():
  actuators = """<velocity joint="hinge" kv="3"/><motor joint="slide" group="2" forcerange="1 2"/>
    <general joint="slide" group="2" dyntype="filterexact" dynprm="0.1" actrange="-0.3 0.3"/>
    <dcmotor joint="hinge" group="2" resistance="1" motorconst="0.1" lugre="10 0.1 0.1 0.2 0.05"/>"""
  off = 'actuatorgroupdisable="2"'
  assert_actuates_as_mujoco(machine(actuators, option=off))
  for integrator in ("implicitfast", "RK4"):
    assert_moves_as_mujoco(machine(actuators, integrator, option=off))


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_without_actuation_nothing_acts_and_activations_stay(integrator):
  actuators = '<velocity joint="hinge" kv="3"/><general joint="slide" dyntype="filter"/>'
  parts = {"flag": 'actuation="disable"', "slide": 'actuatorgravcomp="true"'}
  assert_moves_as_mujoco(machine(actuators, integrator, **parts))


@pytest.mark.parametrize("span", ["-0.5 0.5", "-50 50"])
@pytest.mark.parametrize(
  ("where", "limit"),
  [
    ('joint="slide"', "slide"),
    ('jointinparent="hinge"', "hinge"),
    ('tendon="cord"', "cord"),
    ('tendon="cord"', "slide"),
    ('site="left" gear="1 2 3 0.1 0.2 0.3"', "slide"),
  ],
)
def test_forces_at_a_limit_of_actuator_joint_or_tendon_do_not_damp(where, limit, span):
  for own, its in (("", {limit: f'actuatorfrcrange="{span}"'}), (f'forcerange="{span}"', {})):
    assert_moves_as_mujoco(machine(f'<velocity {where} kv="3" {own}/>', "implicitfast", **its), scale=2.0)
