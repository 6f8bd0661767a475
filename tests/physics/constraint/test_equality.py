"""Flags and digits of equalities; test_parity.py compares their rows in tests/models/equalities.xml."""

import numpy as np
import pytest

from physics.constraint.equality import equality_rows
from physics.load import load_model
from physics.parity import NumpySimulation, random_states
from physics.parity.reference import reference, relative_error
from tests.physics.conftest import CASES
from tests.physics.oracle import mujoco_at, smooth_of


@pytest.mark.parametrize("flag", ["equality", "constraint"])
def test_flags_disable_rows(flag):
  text = CASES["equalities"].read_text()
  model = load_model(text.replace("<worldbody>", f'<option><flag {flag}="disable"/></option><worldbody>'))
  assert list(equality_rows(model, smooth_of(model, mujoco_at(model, model.qpos0)))) == []


def test_bodies_that_no_joint_moves_have_no_rows():
  model = load_model("""<mujoco><worldbody><body name="a"><geom size="1"/></body>
    <body name="b"><joint/><geom size="1"/></body></worldbody>
    <equality><weld body1="a"/><connect body1="a" body2="b" anchor="1 0 0"/></equality></mujoco>""")
  rows = list(equality_rows(model, smooth_of(model, mujoco_at(model, [0.3]))))
  assert [list(row.jacobian) for row in rows] == [[0], [0], []]


GRIPPER = """<mujoco><default><geom contype="0" size="0.01" mass="0.05"/></default><worldbody>
  <body><joint axis="0 0 1"/><geom mass="4"/><body pos="0.9 0.3 0.2"><joint axis="0 1 0"/><geom mass="2"/>
    <body pos="0.8 0.4 0.3"><geom mass="1"/>
      <body pos="0 0.03 0"><joint axis="1 0 0"/><geom pos="0 0 0.02"/>
        <body name="coupler" pos="0 0 0.04"><joint axis="1 0 0"/><geom pos="0 0 0.01"/></body></body>
      <body name="follower" pos="0 0.05 0.01"><joint axis="1 0 0"/><geom pos="0 0 0.02"/></body>
    </body></body></body></worldbody>
  <equality><connect body1="coupler" body2="follower" anchor="0 0 0.03" solref="0.005 1"/></equality>
  </mujoco>"""


def test_float32_keeps_the_gap_of_a_loop_at_the_end_of_an_arm():
  """It is centimetres wide and a metre from the base, whose rounding was 4e-5 of the accelerations."""
  model = load_model(GRIPPER)
  states = random_states(model, 32)
  states.qpos[:, 2:] *= 0.02
  simulation = NumpySimulation(model, 32, ("qacc",), np.float32)
  states.write_to(simulation)
  simulation.forward()
  error = relative_error(simulation.qacc.numpy().astype(float), reference(model, states).qacc)
  assert np.median(error) < 1e-5
