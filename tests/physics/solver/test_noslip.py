"""Suppression of slip: MuJoCo's friction forces after some sweeps."""

import mujoco
import numpy as np
import pytest

from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from physics.parity.reference import converging

FINGER = """<mujoco><option cone="{cone}" noslip_iterations="{sweeps}" noslip_tolerance="{tolerance}"/>
  <worldbody><site name="motor" pos="0 0.1 0.5"/>
    <geom name="floor" type="plane" size="1 1 1" euler="0 10 0" friction="0.6 0.02 0.01"/>
    <body pos="0 0 0.4">
      <joint axis="1 0 0" frictionloss="0.2"/><joint axis="0 1 0" frictionloss="0.1" damping="0.1"/>
      <geom type="capsule" size="0.03" fromto="0 0 0 0.2 0 -0.1" mass="0.5" contype="0" conaffinity="0"/>
      <body pos="0.2 0 -0.1">
        <joint axis="0 1 0" frictionloss="0.05"/><joint name="roll" axis="0 0 1" damping="0.05"/>
        <geom size="0.05" pos="0.1 0.05 -0.23" mass="0.3" condim="{condim}" {tip}/>
        <site name="end" pos="0.1 0 0"/>
      </body></body>
    {other}</worldbody>
  <tendon><fixed frictionloss="0.02"><joint joint="roll" coef="0.5"/></fixed>
    <spatial frictionloss="0.3"><site site="motor"/><site site="end"/></spatial></tendon></mujoco>"""
BALL = """<body name="ball" pos="0.3 0.05 0.1"><freejoint/>
  <geom size="0.08" mass="0.4" contype="2" conaffinity="0"/></body>"""
PLANAR = """<mujoco><option noslip_iterations="{sweeps}" noslip_tolerance="0" cone="elliptic"/><worldbody>
  <geom type="plane" size="1 1 1" condim="{condim}" friction="0.8 0.05 0.02" contype="2" conaffinity="8"/>
  <geom pos="0.1 0.2 -0.5" size="0.5" condim="6" contype="2" conaffinity="4"/>
  <body pos="0 0 0.4"><joint axis="{axis}"/>
    <geom type="capsule" fromto="0 0 0 0.1 0 -0.2" size="0.02" density="{density}" contype="0"/>
    <body pos="0.1 0 -0.2"><joint axis="{axis}"/><geom pos="0 0 -0.16" size="0.05" density="{density}"
      condim="{condim}" friction="0.8 0.05 0.02" contype="8" conaffinity="2"/></body></body>
  <body pos="0.1 0.2 0.5"><freejoint/><geom size="0.1" contype="4"/></body></worldbody></mujoco>"""


def finger(cone, sweeps, tolerance, condim=3, tip="", other=""):
  text = FINGER.format(cone=cone, sweeps=sweeps, tolerance=tolerance, condim=condim, tip=tip, other=other)
  return load_model(text)


def simulated(model, states, names=("qacc",)):
  """Return a simulation with the outputs of some states."""
  simulation = NumpySimulation(model, len(states), names)
  states.write_to(simulation)
  simulation.forward()
  return simulation


def assert_holds_as_mujoco(model, states, tolerance=1e-8, names=("qacc",)):
  """Assert that outputs are MuJoCo's after the model's own number of sweeps; return the accelerations."""
  simulation = simulated(model, states, names)
  mj, contacts = converging(model.mj), 0
  mj.opt.noslip_iterations, mj.opt.noslip_tolerance = model.noslip_iterations, model.noslip_tolerance
  for index in range(len(states)):
    data = mujoco.MjData(mj)
    states.load(index, data)
    mujoco.mj_forward(mj, data)
    mujoco.mj_rnePostConstraint(mj, data)
    contacts += data.ncon
    for name in names:
      moving = slice(1 if name == "cfrc_ext" else 0, None)
      found, expected = getattr(simulation, name)[index].numpy()[moving], getattr(data, name)[moving]
      np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=name)
  assert contacts > len(states) // 8
  return simulation.qacc.numpy()


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_sweeps_and_the_forces_that_hold_are_mujocos(cone, condim):
  """Of joints, cables and contacts: all that pushes the joints, and what reaches the bodies."""
  model = finger(cone, sweeps=3, tolerance=0.0, condim=condim)
  names = ("qacc", "qfrc_constraint", "cfrc_ext")
  assert_holds_as_mujoco(model, random_states(model, 64), names=names)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contacts_between_moving_bodies_are_held_too(cone):
  model = finger(cone, sweeps=2, tolerance=0.0, tip='contype="1" conaffinity="2"', other=BALL)
  states = random_states(model, 64)
  states.qpos[:, 4:7] = [0.3, 0.05, 0.1]
  assert_holds_as_mujoco(model, states)


@pytest.mark.parametrize(
  ("condim", "axis", "density"),
  [(3, "0 1 0", 1000), (3, "0.6 0.8 0", 1), (4, "1 0 0", 1), (6, "0 1 0", 1000), (6, "0.6 0.8 0", 1)],
)
def test_friction_of_a_planar_arm_stays_soft_where_it_does_in_mujoco(condim, axis, density):
  """No joint moves the contact across the arm's plane. MuJoCo holds light links there all the same.

  The ball's contact has six rows in any case.
  """
  text = PLANAR.format(sweeps=2, condim=condim, axis=axis, density=density)
  model, random = load_model(text), np.random.default_rng(0)
  states = random_states(model, 32)
  states.qpos[:, :2] = random.normal(scale=0.05, size=(32, 2))
  states.qvel[:, :2] = random.normal(scale=0.3, size=(32, 2))
  assert_holds_as_mujoco(model, states, 1e-5)


def test_sweeps_end_where_they_gain_less_than_the_tolerance():
  model = finger("pyramidal", sweeps=50, tolerance=1e-3)
  states = random_states(model, 64)
  found = assert_holds_as_mujoco(model, states)
  endless = simulated(finger("pyramidal", sweeps=50, tolerance=0.0), states).qacc.numpy()
  assert np.abs(endless - found).max() > 1e-3
