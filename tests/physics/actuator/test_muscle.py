"""Muscles against MuJoCo: each curve alone, and every combination of their parts."""

import itertools
import types

import mujoco
import numpy as np
import pytest

from physics.actuator.muscle import Muscle, activation_rate, unit_accelerations
from tests.physics.conftest import load
from tests.physics.rig import assert_actuates_as_mujoco, assert_moves_as_mujoco, machine

RANGE = 'lengthrange="-1 1.5"'
CURVES = "0.75 1.05 30 200 0.5 1.6 1.5 1.3 1.2"
SCALED = "0.6 1.2 -1 5 0.4 1.7 3 1.6 1.5"
WHOLE = f'dyntype="muscle" gaintype="muscle" biastype="muscle" dynprm="0.01 0.04" gainprm="{CURVES}"'
MUSCLES = {
  "joint": f'<muscle joint="hinge" {RANGE} force="30"/>',
  "slide, scaled": f'<muscle joint="slide" {RANGE} scale="5" range="0.5 1.3"/>',
  "tendon": f'<muscle tendon="cord" {RANGE} force="9" gear="-0.7" forcerange="-5 0"/>',
  "ball": f'<muscle joint="ball" gear="0.1 0.2 0.3" {RANGE} force="2"/>',
  "smooth": f'<muscle joint="hinge" {RANGE} force="9" tausmooth="0.4" timeconst="0.02 0.05"/>',
  "no eccentric gain": f'<muscle joint="hinge" {RANGE} force="9" fvmax="1" vmax="0.5"/>',
  "sites": f'<general site="left" refsite="right" gear="0.5 -1 2" {WHOLE} biasprm="{SCALED}" {RANGE}/>',
  "early": f'<general joint="hinge" {WHOLE} biasprm="{CURVES}" {RANGE} actearly="true" actrange="0 0.5"/>',
  "excited servo on a circle": '<general joint="ball" gear="0.1 0.2 0.3" dyntype="muscle" '
  'dynprm="0.01 0.04" gainprm="4" biastype="affine" biasprm="0 -4 -0.1"/>',
}
PARTS = [
  (
    f'dyntype="{dynamics}" dynprm="0.05 0.08 0.2"',
    f'gaintype="{gain}" gainprm="{CURVES}"',
    f'biastype="{bias}" biasprm="{SCALED}"',
  )
  for dynamics, gain, bias in itertools.product(
    ("none", "integrator", "filter", "filterexact", "muscle"),
    ("fixed", "affine", "muscle"),
    ("none", "affine", "muscle"),
  )
  if "muscle" in (dynamics, gain, bias)
]


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_forces_rates_and_motion_of_all_muscles_are_mujocos(integrator):
  model = machine("".join(MUSCLES.values()), integrator)
  for scale in (1.0, 20.0):
    assert_actuates_as_mujoco(model, scale)
  assert_moves_as_mujoco(model)


def test_every_combination_of_parts_is_mujocos():
  muscles = (f'<general joint="hinge" {" ".join(parts)} {RANGE}/>' for parts in PARTS)
  model = machine("".join(muscles), "implicitfast")
  assert_actuates_as_mujoco(model)
  assert_moves_as_mujoco(model, steps=3)


def test_curves_are_mujocos_everywhere():
  random = np.random.default_rng(0)
  for _ in range(500):
    low, high = random.uniform([0.2, 1.1], [0.9, 2.0])
    prm = np.array([0.7, 1.05, random.choice([-1.0, 50.0]), 90.0, low, high, *random.uniform(0.5, 2, 3)])
    span, weight = np.array([-0.2, random.uniform(0.3, 1)]), random.uniform(0.5, 2)
    length, velocity = random.uniform([-0.5, -2], [1.5, 2]).tolist()
    model = types.SimpleNamespace(actuator_lengthrange=[span], actuator_acc0=[weight])
    muscle = Muscle(model, 0, prm.tolist(), length, velocity)
    gain = mujoco.mju_muscleGain(length, velocity, span, weight, prm)
    bias = mujoco.mju_muscleBias(length, span, weight, prm)
    np.testing.assert_allclose([muscle.gain(), muscle.bias()], [gain, bias], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("width", [0.0, 0.3])
def test_rates_are_mujocos_beyond_all_limits(width):
  prm = np.array([0.01, 0.04, width])
  for excitation, activation in itertools.product((-1.0, 0.0, 0.4, 0.5, 1.0, 3.0), repeat=2):
    expected = mujoco.mju_muscleDynamics(excitation, activation, prm)
    assert activation_rate(excitation, activation, prm) == pytest.approx(expected, rel=1e-14)


def test_unit_accelerations_are_the_compilers():
  model = load("muscles")
  (found,) = unit_accelerations(model).values()
  np.testing.assert_allclose(found.astype(float), model.actuator_acc0, rtol=1e-9)
  assert unit_accelerations(load("actuators")) == {}
