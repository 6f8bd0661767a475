"""Lengths and moment arms of actuators on plain numbers, against MuJoCo's."""

import numpy as np
import pytest

from physics.load import load_model
from tests.physics.oracle import mujoco_at, smooth_of
from tests.physics.rig import machine, moments

GEAR = 'gear="0.5 -1 2 0.3 0.7 -0.4"'
TRANSMISSIONS = {
  "slide": f'joint="slide" {GEAR}',
  "hinge": f'joint="hinge" {GEAR}',
  "hinge in parent": f'jointinparent="hinge" {GEAR}',
  "ball": f'joint="ball" {GEAR}',
  "ball in parent": f'jointinparent="ball" {GEAR}',
  "free": f'joint="free" {GEAR}',
  "free in parent": f'jointinparent="free" {GEAR}',
  "tendon": f'tendon="cord" {GEAR}',
  "site": f'site="left" {GEAR}',
  "jet": f'site="jet" {GEAR}',
  "site of the world": f'site="fixed" {GEAR}',
  "along another": 'site="left" refsite="right" gear="0.5 -1 2"',
  "about another": 'site="left" refsite="right" gear="0 0 0 0.3 0.7 -0.4"',
  "both": f'site="left" refsite="right" {GEAR}',
  "to the world": f'site="left" refsite="fixed" {GEAR}',
  "from the world": f'site="fixed" refsite="back" {GEAR}',
  "on one body": f'site="left" refsite="left" {GEAR}',
  "crank": f'cranksite="left" slidersite="right" cranklength="0.6" {GEAR}',
  "crank beside a short rod": f'cranksite="left" slidersite="right" cranklength="0.01" {GEAR}',
  "crank of the world": f'cranksite="fixed" slidersite="back" cranklength="0.5" {GEAR}',
  "crank between trees": f'cranksite="right" slidersite="jet" cranklength="2.5" {GEAR}',
  "between trees": f'site="jet" refsite="right" {GEAR}',
}


def test_lengths_velocities_and_moments_are_mujocos():
  model = machine("".join(f'<motor name="{kind}" {words}/>' for kind, words in TRANSMISSIONS.items()))
  for data in moments(model):
    for kind, line in zip(TRANSMISSIONS, smooth_of(model, data).actuated.transmissions, strict=True):
      moment, expected = np.zeros(model.nv), data.actuator(kind)
      moment[list(line.moment)] = list(line.moment.values())
      found = [line.length, line.velocity(data.qvel.tolist()), *moment]
      at = [*expected.length, *expected.velocity, *expected.moment]
      np.testing.assert_allclose(found, at, rtol=1e-12, atol=1e-13, err_msg=kind)


PISTON = """<mujoco><compiler angle="radian"/>
  <worldbody><site name="bore" euler="0 1.5707963267948966 0"/>
    <body><joint axis="0 0 1"/><geom size="0.1"/><site name="pin" pos="0.3 0 0"/></body></worldbody>
  <actuator><motor cranksite="pin" slidersite="bore" cranklength="0.5"/></actuator></mujoco>"""


def test_a_piston_is_where_crank_and_rod_put_it():
  model = load_model(PISTON)
  data = mujoco_at(model, [np.pi / 2])
  (line,) = smooth_of(model, data).actuated.transmissions
  assert line.length == pytest.approx(-0.4)  # the crank is across: 0.3, 0.4 and 0.5 are a right triangle
  assert line.moment[0] == pytest.approx(-0.3)  # and the piston as fast as the pin
