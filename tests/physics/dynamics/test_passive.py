"""Flags; test_parity.py compares qfrc_passive, and its damping where steps are implicit."""

import numpy as np
import pytest

from physics.dynamics.passive import gravity_compensation
from physics.load import load_model
from physics.parity import random_states
from tests.physics.conftest import CASES
from tests.physics.oracle import mujoco_at, smooth_of


def one_joint(joint, body=""):
  return load_model(f"""<mujoco><worldbody>
    <body {body}><joint {joint}/><geom size="1" pos="0.5 0 0"/></body></worldbody></mujoco>""")


def test_actuators_can_be_left_to_compensate():
  model = one_joint('axis="0 1 0" actuatorgravcomp="true"', 'gravcomp="1"')
  smooth = smooth_of(model, mujoco_at(model, [0.3]))
  assert smooth.passive == [0.0]
  assert abs(gravity_compensation(model, smooth.poses)[0]) > 1.0


@pytest.mark.parametrize("flags", ["spring", "damper", "gravity", "spring damper"])
def test_flags_switch_forces_off_as_in_mujoco(flags):
  text = CASES["fluid"].read_text()
  disabled = " ".join(f'{flag}="disable"' for flag in flags.split())
  model = load_model(text.replace("<worldbody>", f"<option><flag {disabled}/></option><worldbody>"))
  states = random_states(model, 2)
  for qpos, qvel in zip(states.qpos, states.qvel, strict=True):
    data = mujoco_at(model, qpos, qvel)
    np.testing.assert_allclose(smooth_of(model, data).passive, data.qfrc_passive, rtol=1e-12, atol=1e-12)
